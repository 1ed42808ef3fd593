/** JSON values as types, and the two readings of them that the tokenizer's files need. */
import { GranaryError } from "../assert";

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function asObject(value: JsonValue, fileName: string): JsonObject {
  if (!isObject(value))
    throw new GranaryError("tokenizer_invalid", `${fileName} does not hold a JSON object`);
  return value;
}

export function parseJson(text: string, fileName: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new GranaryError("tokenizer_invalid", `${fileName} is not JSON: ${(error as Error).message}`);
  }
}
