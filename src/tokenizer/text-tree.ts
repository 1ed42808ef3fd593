/** All texts inside a JSON value, keys included: gathered, or replaced one by one. */
import type { JsonValue } from "./json";

export function collectTexts(value: JsonValue | undefined, into: string[] = []): string[] {
  if (typeof value === "string") {
    into.push(value);
  } else if (Array.isArray(value)) {
    for (const item of value) collectTexts(item, into);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      into.push(key);
      collectTexts(item, into);
    }
  }
  return into;
}

export function mapTexts(value: JsonValue | undefined, change: (text: string) => string): JsonValue {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== "object" || value === null) return value ?? null;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [change(key), mapTexts(item, change)]),
  );
}
