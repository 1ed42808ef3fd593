/**
 * What commands are given by the composition root: the process's surroundings and what the executable
 * carries.
 */
import type { EmbeddedFile } from "../../ffi/unpack";
import type { Environment } from "./parse-flags";

/** Files inside the executable; those a build lacks are absent. */
export interface EmbeddedFiles {
  readonly cpuLibrary: EmbeddedFile;
  readonly cudaLibrary: EmbeddedFile | undefined;
  /** Device source of the kernels that are compiled at run time. */
  readonly kernelSource: EmbeddedFile | undefined;
  /** Files of the demo model's directory; none in a build without it. */
  readonly demoModel: readonly EmbeddedFile[];
}

export interface Runtime {
  readonly version: string;
  readonly environment: Environment;
  readonly embedded: EmbeddedFiles;
  /** Entry points of the Workers; only the program's own entry can name them. */
  readonly workers: { readonly engine: URL | string; readonly tokenizer: URL | string };
  /** Monotonic. */
  readonly clockMs: () => number;
  readonly unixSeconds: () => number;
  out(text: string): void;
  err(text: string): void;
  /** Calls back at each SIGTERM or SIGINT, in order of arrival. */
  onTerminate(listener: (count: number) => void): void;
  /** True when standard error is a terminal. */
  readonly isTerminal: boolean;
}
