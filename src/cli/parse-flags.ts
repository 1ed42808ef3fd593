/**
 * Turns arguments and environment into flag values: a flag wins over its GRANARY_ twin, which wins over the
 * default.
 */
import { GranaryError } from "../assert";
import { type CommandName, environmentName, type FlagSpec, type FlagValue } from "./flag-types";
import { allFlags } from "./flags";

export type Environment = Readonly<Record<string, string | undefined>>;

export class FlagValues {
  readonly #values: ReadonlyMap<string, FlagValue>;

  constructor(values: ReadonlyMap<string, FlagValue>) {
    this.#values = values;
  }

  /** The same values with some replaced. */
  with(values: Readonly<Record<string, FlagValue>>): FlagValues {
    return new FlagValues(new Map([...this.#values, ...Object.entries(values)]));
  }

  text(name: string): string | undefined {
    return this.#values.get(name) as string | undefined;
  }

  number(name: string): number | undefined {
    return this.#values.get(name) as number | undefined;
  }

  isSet(name: string): boolean {
    return this.#values.get(name) === true;
  }

  list(name: string): readonly string[] {
    return (this.#values.get(name) as readonly string[] | undefined) ?? [];
  }

  /** A value that its default guarantees. */
  required<T extends FlagValue>(name: string): T {
    const value = this.#values.get(name);
    if (value === undefined) throw new GranaryError("usage", `--${name} has no value`);
    return value as T;
  }
}

export interface ParsedCommand {
  readonly flags: FlagValues;
  readonly positionals: readonly string[];
  readonly wantsHelp: boolean;
}

function usage(message: string): never {
  throw new GranaryError("usage", message);
}

/** Judges one value as typed; `origin` is the flag or the variable it came from. */
export function parseFlagValue(spec: FlagSpec, text: string, origin: string): FlagValue {
  if (spec.kind === "flag") {
    if (["1", "true", ""].includes(text)) return true;
    if (["0", "false"].includes(text)) return false;
    usage(`${origin} must be true or false, not '${text}'`);
  }
  if (spec.kind === "list") return text === "" ? usage(`${origin} must not be empty`) : [text];
  if (spec.kind === "text") {
    // An empty address would mean all of them, an empty name nobody's.
    if (text === "") usage(`${origin} must not be empty`);
    if (spec.choices !== undefined && !spec.choices.includes(text)) {
      usage(`${origin} must be one of ${spec.choices.join(", ")}, not '${text}'`);
    }
    return text;
  }
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) usage(`${origin} must be a number, not '${text}'`);
  if (spec.kind === "integer" && !Number.isSafeInteger(value))
    usage(`${origin} must be a whole number, not '${text}'`);
  if (spec.minimum !== undefined && value < spec.minimum) usage(`${origin} must be at least ${spec.minimum}`);
  if (spec.maximum !== undefined && value > spec.maximum) usage(`${origin} must be at most ${spec.maximum}`);
  return value;
}

export function refusePositionals(positionals: readonly string[]): void {
  if (positionals.length > 0) usage(`unexpected argument '${positionals[0]}'`);
}

function fromEnvironment(command: CommandName, environment: Environment): Map<string, FlagValue> {
  const values = new Map<string, FlagValue>();
  for (const spec of allFlags) {
    if (!spec.commands.includes(command)) continue;
    const variable = environmentName(spec.name);
    const text = environment[variable];
    if (text !== undefined && text !== "") {
      const parts = spec.kind === "list" ? text.split(",") : [text];
      const parsed = parts.map((part) => parseFlagValue(spec, part, variable));
      values.set(spec.name, spec.kind === "list" ? (parsed as string[][]).flat() : (parsed[0] as FlagValue));
    } else if (spec.defaultValue !== undefined) {
      values.set(spec.name, parseFlagValue(spec, spec.defaultValue, variable));
    }
  }
  return values;
}

/** Parses what follows the command's name. Throws GranaryError "usage" with one line. */
export function parseCommand(
  command: CommandName,
  args: readonly string[],
  environment: Environment,
): ParsedCommand {
  const values = new Map<string, FlagValue>();
  const positionals: string[] = [];
  let wantsHelp = false;
  for (let i = 0; i < args.length; i++) {
    const argument = args[i] as string;
    if (argument === "--") {
      positionals.push(...args.slice(i + 1));
      break;
    }
    if (argument === "--help" || argument === "-h") wantsHelp = true;
    else if (!argument.startsWith("--")) positionals.push(argument);
    else {
      const [name = "", inline] = splitAssignment(argument.slice(2));
      const spec = allFlags.find((flag) => flag.name === name && flag.commands.includes(command));
      if (spec === undefined) usage(`unknown flag --${name}; granary ${command} --help lists them`);
      const text = inline ?? (spec.kind === "flag" ? "" : args[++i]);
      if (text === undefined) usage(`--${name} needs a value`);
      const value = parseFlagValue(spec, text, `--${name}`);
      const former = spec.kind === "list" ? values.get(name) : undefined;
      values.set(name, former === undefined ? value : [...(former as string[]), ...(value as string[])]);
    }
  }
  // Help is there for those whose variables are wrong, too.
  const defaults = wantsHelp ? [] : fromEnvironment(command, environment);
  return { flags: new FlagValues(new Map([...defaults, ...values])), positionals, wantsHelp };
}

function splitAssignment(text: string): [string, string | undefined] {
  const at = text.indexOf("=");
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
