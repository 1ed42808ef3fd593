/**
 * The text side of a model directory, parsed: tokenizer.json, tokenizer_config.json, the chat template and
 * the files that name end tokens. Where the files come from (a directory, a hub snapshot, the executable
 * itself) is the caller's business.
 */
import { GranaryError } from "../assert";
import type { JsonObject } from "./json";
import { asObject, parseJson } from "./json";

export interface TokenizerFiles {
  readonly tokenizer: JsonObject;
  readonly tokenizerConfig: JsonObject;
  readonly config: JsonObject;
  readonly generationConfig: JsonObject;
  /** Text of chat_template.jinja; it wins over `chat_template` in tokenizer_config.json. */
  readonly chatTemplate: string | undefined;
}

/** Gives the text of a file of the model directory, or undefined where there is none. */
export type ReadModelText = (fileName: string) => string | undefined;

/** Reads what the tokenizer needs; only tokenizer.json must be there. `place` is for the message when not. */
export function readTokenizerFiles(read: ReadModelText, place = "the model directory"): TokenizerFiles {
  const optional = (fileName: string): JsonObject => {
    const text = read(fileName);
    return text === undefined ? {} : asObject(parseJson(text, fileName), fileName);
  };
  const text = read("tokenizer.json");
  if (text === undefined) {
    throw new GranaryError("tokenizer_missing", `${place} has no tokenizer.json`);
  }
  return {
    tokenizer: asObject(parseJson(text, "tokenizer.json"), "tokenizer.json"),
    tokenizerConfig: optional("tokenizer_config.json"),
    config: optional("config.json"),
    generationConfig: optional("generation_config.json"),
    chatTemplate: read("chat_template.jinja"),
  };
}
