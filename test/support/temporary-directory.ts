/** Directories that live as long as one test file. */
import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];

/** A new empty directory; removed when the tests of the file have run. */
export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "granary-test-"));
  made.push(path);
  return path;
}

/** Called once at the top of a test file that uses temporaryDirectory. */
export function removeTemporaryDirectories(): void {
  afterAll(() => {
    for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
  });
}
