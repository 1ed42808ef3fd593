/**
 * How modules reach each other and the outside: no rings, one place for worker files, one for native calls.
 */
import { describe, expect, test } from "bun:test";
import { codeWithoutText } from "../support/code-without-text";
import { allImports, importRings } from "../support/import-graph";
import { filesIn, linesMatching, nativeFiles, sourceFiles, typeScriptFiles } from "../support/source-files";

const program = filesIn(typeScriptFiles, "src", "ffi");
const pathsOf = (entries: readonly string[]) => [...new Set(entries.map((entry) => entry.split(":")[0]))];

describe("modules", () => {
  test("do not import each other in a ring", () => {
    expect(importRings().map((ring) => ring.join(" -> "))).toEqual([]);
  });

  test("are imported without their extension", () => {
    const withExtension = linesMatching(program, /from "\.{1,2}\/[^"]+\.ts"/);
    expect(withExtension).toEqual([]);
  });

  test("are imported by paths that exist", () => {
    const known = new Set(typeScriptFiles.map(({ path }) => path));
    const missing = allImports.filter(
      ({ from, to }) =>
        /^(src|ffi|scripts|test|bench)\//.test(to) &&
        from !== to &&
        !known.has(to) &&
        !/\.(json|css|html|txt|js)$/.test(to),
    );
    expect(missing.map(({ from, to }) => `${from} -> ${to}`)).toEqual([]);
  });
});

describe("what only one place does", () => {
  test("files of Workers are named by the composition root alone", () => {
    expect(pathsOf(linesMatching(program, /new URL\([^)]*import\.meta/))).toEqual(["src/main.ts"]);
    expect(pathsOf(linesMatching(program, /import\.meta\.(dir|path|resolve|filename)/))).toEqual([]);
  });

  test("native calls are declared in ffi alone", () => {
    const users = allImports.filter(
      ({ from, to }) => to === "bun:ffi" && /^(src|scripts|bench)\//.test(from),
    );
    expect(users.map(({ from }) => from)).toEqual([]);
  });

  test("BigInt serves borders that speak of 64 bits, and nothing on the way to native code", () => {
    const users = linesMatching(
      program.map((file) => ({ ...file, lines: codeWithoutText(file.text).split("\n") })),
      /\bBigInt\(|\b\d+n\b|BigU?Int64Array|\bbigint\b/,
    );
    const allowed = [
      // Device descriptions, headers of files, seeds as clients write them, hashes of cache events.
      "ffi/device.ts",
      "src/weights/safetensors.ts",
      "src/server/",
      "src/scheduler/fnv.ts",
      "src/scheduler/kv-cache-event",
    ];
    expect(pathsOf(users).filter((path) => !allowed.some((prefix) => path?.startsWith(prefix)))).toEqual([]);
  });
});

describe("device sources", () => {
  const deviceHeaders = nativeFiles.filter(({ path }) => path.endsWith(".cuh"));

  test("include nothing but each other: where they are compiled late there is no header", () => {
    expect(deviceHeaders.length).toBeGreaterThan(3);
    const foreign = linesMatching(deviceHeaders, /^\s*#\s*include\s+(?!"[\w./-]+\.cuh")/);
    expect(foreign).toEqual([]);
  });

  test("come in files that are included once", () => {
    const unguarded = nativeFiles.filter(
      ({ path, text }) =>
        /\.(h|cuh)$/.test(path) && !/^#pragma once$/m.test(text) && !/#ifndef \w+_H/.test(text),
    );
    expect(unguarded.map(({ path }) => path)).toEqual([]);
  });
});

describe("every source file", () => {
  test("is text without tabs or other control characters", () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    const odd = /[\u0000-\u0008\u000b-\u001f\u007f\u200b-\u200f\u2028\u2029\ufeff]|\t/;
    expect(pathsOf(linesMatching(sourceFiles, odd))).toEqual([]);
  });
});
