/** The control tokens that open every prompt of a model (usually one beginning-of-text token, often none). */

import { tokenText } from "./end-tokens";
import type { JsonObject, JsonValue } from "./json";
import { isObject } from "./json";

/**
 * Reads the prefix from the post-processor of tokenizer.json; `add_bos_token` in tokenizer_config.json
 * overrides it for the beginning-of-text token. Tokens behind the text are never added: a prompt is to be
 * continued.
 */
export function readPromptPrefix(
  tokenizer: JsonObject,
  tokenizerConfig: JsonObject,
  idOf: (token: string) => number | undefined,
): number[] {
  const prefix = templatePrefix(tokenizer.post_processor).flatMap((token) => idOf(token) ?? []);
  const bosText = tokenText(tokenizerConfig, "bos_token");
  const bos = bosText === undefined ? undefined : idOf(bosText);
  if (bos === undefined || typeof tokenizerConfig.add_bos_token !== "boolean") return prefix;
  if (!tokenizerConfig.add_bos_token) return prefix.filter((id) => id !== bos);
  return prefix.includes(bos) ? prefix : [bos, ...prefix];
}

/** Special tokens that stand before the first sequence in a TemplateProcessing step. */
function templatePrefix(postProcessor: JsonValue | undefined): string[] {
  if (!isObject(postProcessor)) return [];
  if (postProcessor.type === "Sequence" && Array.isArray(postProcessor.processors)) {
    return postProcessor.processors.flatMap(templatePrefix);
  }
  if (postProcessor.type !== "TemplateProcessing" || !Array.isArray(postProcessor.single)) return [];
  const prefix: string[] = [];
  for (const item of postProcessor.single) {
    if (!isObject(item) || !isObject(item.SpecialToken)) break;
    prefix.push(String(item.SpecialToken.id));
  }
  return prefix;
}
