/**
 * A command's surroundings in a test: what it prints is kept, its
 * clock stands still, and the built kernel library is embedded.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { EmbeddedFiles, Runtime } from "../../src/cli/runtime";
import { cpuLibraryPath } from "./cpu-device";
import { temporaryDirectory } from "./temporary-directory";

export interface FakeRuntime extends Runtime {
  readonly printed: { out: string; err: string };
  readonly clock: { nowMs: number };
}

/** A file as the executable would carry it. */
export function embeddedFile(path: string): EmbeddedFiles["cpuLibrary"] {
  const sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
  return { name: basename(path), path, sha256 };
}

export function fakeRuntime(
  options: {
    readonly environment?: Runtime["environment"];
    readonly isTerminal?: boolean;
    readonly embedded?: Partial<EmbeddedFiles>;
  } = {},
): FakeRuntime {
  const printed = { out: "", err: "" };
  const clock = { nowMs: 0 };
  return {
    version: "1.2.3",
    environment: { XDG_CACHE_HOME: temporaryDirectory(), ...options.environment },
    embedded: {
      cpuLibrary: embeddedFile(cpuLibraryPath),
      cudaLibrary: undefined,
      kernelSource: undefined,
      demoModel: [],
      ...options.embedded,
    },
    workers: { engine: "engine-worker", tokenizer: "tokenizer-worker" },
    clockMs: () => clock.nowMs,
    unixSeconds: () => 1_700_000_000,
    out: (text) => {
      printed.out += text;
    },
    err: (text) => {
      printed.err += text;
    },
    onTerminate: () => {},
    isTerminal: options.isTerminal ?? false,
    printed,
    clock,
  };
}
