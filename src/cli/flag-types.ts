/** How one flag is described; everything about it (parsing, environment, help) follows from this. */

export type FlagKind = "text" | "integer" | "number" | "flag" | "list";

export interface FlagSpec {
  /** Without dashes. A "flag" named no-x turns x off. */
  readonly name: string;
  readonly kind: FlagKind;
  readonly help: string;
  /** Shown for the value in help. */
  readonly placeholder?: string;
  readonly choices?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  /** As it would be typed; shown in help and parsed like a given value. */
  readonly defaultValue?: string;
  readonly commands: readonly CommandName[];
}

export type CommandName = "serve" | "run" | "bench" | "doctor";

export type FlagValue = string | number | boolean | readonly string[];

/** The environment twin: --max-model-len is GRANARY_MAX_MODEL_LEN. */
export function environmentName(flag: string): string {
  return `GRANARY_${flag.toUpperCase().replaceAll("-", "_")}`;
}
