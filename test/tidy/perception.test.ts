/** What a folder may know: words it never says and folders it never looks into. */
import { describe, expect, test } from "bun:test";
import { codeWithoutText } from "../support/code-without-text";
import { importsBetween } from "../support/import-graph";
import { filesIn, type SourceFile, typeScriptFiles } from "../support/source-files";

const inSource = (...folders: string[]) =>
  filesIn(typeScriptFiles, ...folders.map((folder) => `src/${folder}`));

/** "path: word" for every identifier of the code that the pattern finds. */
function identifiers(files: readonly SourceFile[], pattern: RegExp): string[] {
  return files.flatMap(({ path, text }) => {
    const words = new Set(codeWithoutText(text).match(/[A-Za-z_$][\w$]*/g) ?? []);
    return [...words].filter((word) => pattern.test(word)).map((word) => `${path}: ${word}`);
  });
}

describe("words", () => {
  test("of declared shapes stay in recipes", () => {
    const shapes = /^(rowsPerPage|entryStrideTokens|checkpointGranularity)$/i;
    const elsewhere = typeScriptFiles.filter(
      ({ path }) => path.startsWith("src/") && !path.startsWith("src/recipes/"),
    );
    expect(identifiers(elsewhere, shapes)).toEqual([]);
  });

  test("of pages of kernels are not the scheduler's or the cache's", () => {
    expect(identifiers(inSource("scheduler", "cache"), /pageSize|rowsPerPage|kernelPage/i)).toEqual([]);
  });

  test("of tokens, windows and granularity are not those of placement", () => {
    const core = inSource("cache/core", "cache/allocator");
    expect(core.length).toBeGreaterThan(5);
    expect(identifiers(core, /granularit|window/i)).toEqual([]);
    const tokens = identifiers(core, /token/i).filter((entry) => !/: availableTokens(After)?$/.test(entry));
    expect(tokens).toEqual([]);
  });

  test("of checkpoints are not the scheduler's", () => {
    expect(identifiers(inSource("scheduler"), /checkpoint/i)).toEqual([]);
  });

  test("of hardware are not those of recipes, scheduler or cache", () => {
    expect(identifiers(inSource("recipes", "scheduler", "cache"), /cuda|gpu|^cpu|hopper|nvidia/i)).toEqual(
      [],
    );
  });

  test("of cache groups are not those of models and layers", () => {
    expect(identifiers(inSource("models", "layers"), /groupIds?$/i)).toEqual([]);
  });

  test("of kernel pages are said where blocks become pages, and where a user may set them", () => {
    const allowed = ["mapping", "cli", "engine"].map((folder) => `src/${folder}/`);
    const elsewhere = typeScriptFiles.filter(
      ({ path }) => path.startsWith("src/") && !allowed.some((folder) => path.startsWith(folder)),
    );
    expect(identifiers(elsewhere, /kernelPageSize/i)).toEqual([]);
  });
});

describe("folders", () => {
  const engineSide = [
    "executor",
    "engine",
    "models",
    "layers",
    "runtime-kernels",
    "weights",
    "memory",
    "mapping",
    "recipes",
  ];
  const everythingElse = [...engineSide, "scheduler", "cache", "tokenizer", "server", "cli"];
  /** From each folder, what it never imports. */
  const blind: Readonly<Record<string, readonly string[]>> = {
    "cache/prefix": ["cache/allocator"],
    "cache/allocator": ["cache/prefix"],
    "cache/core": ["cache/allocator", "cache/prefix", "cache/coordinator"],
    cache: [...engineSide, "tokenizer", "server", "cli"],
    scheduler: [...engineSide, "tokenizer", "server", "cli"],
    recipes: [
      "cache",
      "memory",
      "mapping",
      "models",
      "layers",
      "weights",
      "executor",
      "engine",
      "server",
      "cli",
    ],
    memory: ["cache", "mapping", "models", "layers", "weights", "executor", "engine", "server", "cli"],
    mapping: ["models", "layers", "weights", "executor", "engine", "server", "cli"],
    weights: [
      "cache",
      "scheduler",
      "memory",
      "mapping",
      "models",
      "layers",
      "executor",
      "engine",
      "server",
      "cli",
    ],
    "runtime-kernels": everythingElse.filter((folder) => folder !== "runtime-kernels"),
    layers: ["cache", "scheduler", "memory", "models", "executor", "engine", "server", "cli"],
    models: ["cache", "scheduler", "memory", "executor", "engine", "server", "cli", "tokenizer"],
    executor: ["cache", "engine", "server", "cli", "tokenizer"],
    engine: ["server", "cli", "tokenizer"],
    tokenizer: everythingElse.filter((folder) => folder !== "tokenizer"),
    server: [...engineSide.filter((folder) => folder !== "engine"), "scheduler", "cache", "cli"],
  };
  /** With what a tenant's hash chain begins is the server's to say, and the cache's to define. */
  const exceptions = /^src\/server\/.* -> src\/cache\/prefix\/namespace-root\.ts$/;
  for (const [folder, others] of Object.entries(blind)) {
    test(`${folder} does not look into ${others.join(", ")}`, () => {
      const paths = others.map((other) => `src/${other}`);
      const seen = importsBetween(`src/${folder}`, paths).filter((entry) => !exceptions.test(entry));
      expect(seen).toEqual([]);
    });
  }

  test("recipes, scheduler, cache, tokenizer and server never touch the native boundary", () => {
    for (const folder of ["recipes", "scheduler", "cache", "tokenizer", "server"]) {
      expect(importsBetween(`src/${folder}`, ["ffi", "bun:ffi"])).toEqual([]);
    }
  });

  test("the native boundary knows nothing above it", () => {
    expect(importsBetween("ffi", ["src"])).toEqual([]);
  });

  test("nothing imports the composition root, and nothing but it reads what is embedded", () => {
    for (const folder of ["src", "ffi", "scripts"])
      expect(importsBetween(folder, ["src/main.ts"])).toEqual([]);
    expect(importsBetween("src", ["#embedded"]).map((entry) => entry.split(" -> ")[0])).toEqual([
      "src/main.ts",
    ]);
  });
});
