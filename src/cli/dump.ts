/** Where the state of a broken engine is kept for whoever looks into it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runtime } from "./runtime";

/** Writes the text to a private file and returns its path; a reason in words where no place takes it. */
export function writeDump(text: string, runtime: Pick<Runtime, "environment" | "unixSeconds">): string {
  const { XDG_STATE_HOME, HOME } = runtime.environment;
  const state = XDG_STATE_HOME ?? (HOME === undefined ? undefined : join(HOME, ".local/state"));
  const failures: string[] = [];
  for (const root of [...(state === undefined ? [] : [state]), tmpdir()]) {
    try {
      const directory = join(root, "granary");
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const path = join(directory, `dump-${runtime.unixSeconds()}-${process.pid}.txt`);
      writeFileSync(path, text, { mode: 0o600 });
      return path;
    } catch (error) {
      failures.push((error as Error).message);
    }
  }
  return `no file (${failures.join("; ")})`;
}
