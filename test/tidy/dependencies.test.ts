/** Foreign code: pinned to a version, listed with its reason and licence, and nothing else. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json";
import { allImports } from "../support/import-graph";
import { projectRoot } from "../support/source-files";

const runtime: Readonly<Record<string, string>> = packageJson.dependencies;
const development: Readonly<Record<string, string>> = packageJson.devDependencies;
const all = { ...runtime, ...development };

/** Rows of the tables in docs/dependencies.md by package name. */
const listed = new Map(
  readFileSync(join(projectRoot, "docs/dependencies.md"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, name = "", version = "", licence = "", reason = ""]) => [
      name.replaceAll("`", ""),
      { version, licence, reason },
    ]),
);

/** "@scope/name" or "name" of an import. */
function packageOf(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

describe("dependencies", () => {
  test("are pinned to one version each", () => {
    for (const [name, version] of Object.entries(all))
      expect([name, version]).toEqual([name, expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
  });

  test("are listed with version, licence and reason, and so is nothing else", () => {
    expect([...listed.keys()].sort()).toEqual(Object.keys(all).sort());
    for (const [name, { version, licence, reason }] of listed) {
      expect([name, version]).toEqual([name, all[name as keyof typeof all]]);
      expect(licence).not.toBe("");
      expect(reason.length).toBeGreaterThan(20);
    }
  });

  test("have the licence that they say themselves", () => {
    for (const [name, { licence }] of listed) {
      const path = join(projectRoot, "node_modules", name, "package.json");
      if (!existsSync(path)) continue;
      expect([name, JSON.parse(readFileSync(path, "utf8")).license]).toEqual([name, licence]);
    }
  });

  test("of the program are those it imports, and the program imports no other", () => {
    const builtIn = /^(bun|node:|bun:|\.|#|src\/|ffi\/|scripts\/|test\/|bench\/|build\/|package\.json)/;
    const used = new Set(
      allImports
        .filter(({ from, to }) => /^(src|ffi)\//.test(from) && !builtIn.test(to))
        .map(({ to }) => packageOf(to)),
    );
    expect([...used].sort()).toEqual(Object.keys(runtime).sort());
  });

  test("of the scripts are none: they run before anything is installed but Bun", () => {
    const foreign = allImports.filter(
      ({ from, to }) => from.startsWith("scripts/") && packageOf(to) in all && packageOf(to) !== "bun",
    );
    expect(foreign.map(({ from, to }) => `${from} -> ${to}`)).toEqual([]);
  });

  test("are locked: the lock file names each at its version, and no host to fetch it from", () => {
    const lock = readFileSync(join(projectRoot, "bun.lock"), "utf8");
    for (const [name, version] of Object.entries(all)) expect(lock).toContain(`"${name}@${version}"`);
    expect(lock).not.toMatch(/https?:\/\//);
  });
});
