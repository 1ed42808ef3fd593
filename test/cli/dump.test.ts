/** Where the state of a broken engine goes. */
import { describe, expect, test } from "bun:test";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeDump } from "../../src/cli/dump";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

describe("a dump", () => {
  test("lands in the state directory, readable by its owner alone", () => {
    const state = temporaryDirectory();
    const path = writeDump("text", { environment: { XDG_STATE_HOME: state }, unixSeconds: () => 7 });
    expect(path).toStartWith(join(state, "granary/dump-7-"));
    expect(readFileSync(path, "utf8")).toBe("text");
    expect(statSync(path).mode & 0o077).toBe(0);
  });

  test("lands in the temporary directory where the state directory takes nothing", () => {
    const file = join(temporaryDirectory(), "file");
    writeFileSync(file, "");
    const path = writeDump("text", { environment: { XDG_STATE_HOME: file }, unixSeconds: () => 8 });
    expect(readFileSync(path, "utf8")).toBe("text");
  });
});
