/**
 * Typed access to a config.json: every value is judged when it is read, and what nobody read can be reported.
 */
import { GranaryError } from "../assert";

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export class ConfigReader {
  readonly #values: JsonObject;
  readonly #origin: string;
  readonly #read = new Set<string>();
  readonly #sections = new Map<string, ConfigReader>();
  readonly #remarks: string[];

  /** `origin` names the file (and section) in errors; a section adds its remarks to those of the whole. */
  constructor(values: JsonObject, origin: string, remarks: string[] = []) {
    this.#values = values;
    this.#origin = origin;
    this.#remarks = remarks;
  }

  /** What a reader of the log should know: defaults that were taken. */
  get remarks(): readonly string[] {
    return this.#remarks;
  }

  remark(text: string): void {
    this.#remarks.push(`${this.#origin}: ${text}`);
  }

  fail(reason: string): never {
    throw new GranaryError("unsupported_config", `${this.#origin}: ${reason}`);
  }

  /** The raw value; null counts as absent. */
  raw(key: string): unknown {
    this.#read.add(key);
    return this.#values[key] ?? undefined;
  }

  has(key: string): boolean {
    return this.raw(key) !== undefined;
  }

  number(key: string, fallback?: number): number {
    const value = this.raw(key) ?? fallback;
    if (value === undefined) this.fail(`${key} is missing`);
    if (typeof value !== "number" || !Number.isFinite(value)) this.fail(`${key} must be a number`);
    return value;
  }

  /** A whole number of at least 1. */
  count(key: string, fallback?: number): number {
    const value = this.number(key, fallback);
    if (!Number.isInteger(value) || value < 1) this.fail(`${key} must be a positive integer, not ${value}`);
    return value;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.raw(key) ?? fallback;
    if (typeof value !== "boolean") this.fail(`${key} must be true or false`);
    return value;
  }

  text(key: string, fallback?: string): string {
    const value = this.raw(key) ?? fallback;
    if (value === undefined) this.fail(`${key} is missing`);
    if (typeof value !== "string") this.fail(`${key} must be text`);
    return value;
  }

  section(key: string): ConfigReader | undefined {
    const value = this.raw(key);
    if (value === undefined) return undefined;
    if (!isObject(value)) this.fail(`${key} must be an object`);
    const known = this.#sections.get(key);
    if (known !== undefined) return known;
    const section = new ConfigReader(value, `${this.#origin}, ${key}`, this.#remarks);
    this.#sections.set(key, section);
    return section;
  }

  /** Throws unless `key` is absent or has one of the values that change nothing. */
  refuseUnless(key: string, neutral: readonly unknown[], what: string): void {
    const value = this.raw(key);
    if (value !== undefined && !neutral.includes(value)) {
      this.fail(`${key} = ${JSON.stringify(value)} is not supported: ${what}`);
    }
  }

  keys(): readonly string[] {
    return Object.keys(this.#values);
  }

  /** Keys that nobody asked for, those of read sections included as "section.key". */
  unread(): readonly string[] {
    const own = this.keys().filter((key) => !this.#read.has(key));
    const nested = [...this.#sections].flatMap(([name, section]) =>
      section.unread().map((key) => `${name}.${key}`),
    );
    return [...own, ...nested];
  }
}
