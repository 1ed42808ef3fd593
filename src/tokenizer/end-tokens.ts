/**
 * The ids that end a generation: the union of what all three files say, since each alone is often
 * incomplete.
 */
import type { JsonObject, JsonValue } from "./json";
import { isObject } from "./json";
import type { TokenizerFiles } from "./tokenizer-files";

/** End tokens in ascending order. `idOf` finds the id of a token's text. */
export function readEndTokens(
  files: Pick<TokenizerFiles, "config" | "generationConfig" | "tokenizerConfig">,
  idOf: (token: string) => number | undefined,
): number[] {
  const ids = new Set<number>();
  const addAll = (value: JsonValue | undefined) => {
    for (const id of Array.isArray(value) ? value : [value]) {
      if (typeof id === "number" && Number.isInteger(id) && id >= 0) ids.add(id);
    }
  };
  addAll(files.config.eos_token_id);
  if (isObject(files.config.text_config)) addAll(files.config.text_config.eos_token_id);
  addAll(files.generationConfig.eos_token_id);
  const text = tokenText(files.tokenizerConfig, "eos_token");
  addAll(text === undefined ? undefined : idOf(text));
  return [...ids].sort((a, b) => a - b);
}

/** The text of a named token of tokenizer_config.json, which is a string or an object with `content`. */
export function tokenText(tokenizerConfig: JsonObject, name: string): string | undefined {
  const value = tokenizerConfig[name];
  if (typeof value === "string") return value;
  return isObject(value) && typeof value.content === "string" ? value.content : undefined;
}
