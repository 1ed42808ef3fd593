/** Which model a command serves, and the options an engine gets from the flags. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { engineOptions } from "../../src/cli/engine-setup";
import { demoModelName, locateModel, readModelTexts } from "../../src/cli/model-source";
import { parseCommand } from "../../src/cli/parse-flags";
import { expectError } from "../support/expect-error";
import { embeddedFile, fakeRuntime } from "../support/fake-runtime";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const flagsOf = (...args: string[]) => parseCommand("serve", args, {}).flags;

function demoFile() {
  const path = join(temporaryDirectory(), "config.json");
  writeFileSync(path, "{}");
  return embeddedFile(path);
}

describe("the model", () => {
  test("is the embedded one when none is named", () => {
    const runtime = fakeRuntime({ embedded: { demoModel: [demoFile()] } });
    const model = locateModel(flagsOf(), runtime);
    expect(model).toMatchObject({ name: demoModelName, root: demoModelName });
    expect(readFileSync(join(model.directory, "config.json"), "utf8")).toBe("{}");
  });

  test("must be named where none is embedded", () => {
    expectError(() => locateModel(flagsOf(), fakeRuntime()), "usage", "--model");
  });

  test("is a directory or a snapshot of the hub's cache, under the name it was given by", () => {
    const directory = temporaryDirectory();
    const cache = temporaryDirectory();
    const snapshot = join(cache, "models--org--model/snapshots/abc");
    mkdirSync(snapshot, { recursive: true });
    const runtime = fakeRuntime({ environment: { HF_HUB_CACHE: cache } });
    expect(locateModel(flagsOf("--model", directory), runtime)).toEqual({
      directory,
      name: directory,
      root: directory,
    });
    const named = locateModel(flagsOf("--model", "org/model", "--revision", "abc"), runtime);
    expect(named).toEqual({ directory: snapshot, name: "org/model", root: "org/model" });
  });

  test("may lack some of its texts", () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "tokenizer.json"), "{}");
    writeFileSync(join(directory, "config.json"), '{"eos_token_id": 2}');
    expect(() => readModelTexts(directory)).not.toThrow();
  });

  test("is named by its directory when it has no tokenizer", () => {
    const directory = temporaryDirectory();
    expectError(() => readModelTexts(directory), "tokenizer_missing", `${directory} has no tokenizer.json`);
  });
});

describe("the engine's options", () => {
  const model = { directory: "/model", name: "m", root: "m" };
  const optionsOf = (...args: string[]) => engineOptions(flagsOf(...args), fakeRuntime(), model, [2, 7]);

  test("are sound by default", () => {
    expect(optionsOf("--model", "/model")).toMatchObject({
      modelDirectory: "/model",
      loadFormat: "auto",
      device: "auto",
      dtype: "auto",
      kvCacheDtype: "auto",
      cudaLibrary: undefined,
      maxModelLen: undefined,
      prefixGranularity: 64,
      enablePrefixCaching: true,
      enableMixedBatch: false,
      enableGraphs: true,
      debugChecks: false,
      endTokens: [2, 7],
    });
  });

  test("cache the demo model in finer steps, since its prompts are short", () => {
    expect(optionsOf()).toMatchObject({ prefixGranularity: 8, kernelPageSize: 8 });
    expect(optionsOf("--prefix-granularity", "32")).toMatchObject({ prefixGranularity: 32 });
  });

  test("follow the flags", () => {
    const changed = optionsOf(
      ...["--load-format", "dummy", "--seed", "3", "--dtype", "float32", "--kv-cache-dtype", "bfloat16"],
      ...["--max-model-len", "100", "--max-num-seqs", "5", "--max-num-batched-tokens", "70"],
      ...["--prefix-granularity", "16", "--num-lcm-blocks", "9", "--cpu-cache-bytes", "1000"],
      ...["--gpu-memory-utilization", "0.5", "--threads", "2", "--kernel-page-size", "8"],
      ...["--no-enable-prefix-caching", "--enable-mixed-batch", "--enforce-eager", "--debug-checks"],
    );
    expect(changed).toMatchObject({
      loadFormat: "dummy",
      seed: 3,
      dtype: "float32",
      kvCacheDtype: "bfloat16",
      maxModelLen: 100,
      maxNumSeqs: 5,
      maxNumBatchedTokens: 70,
      prefixGranularity: 16,
      numLcmBlocks: 9,
      cpuCacheBytes: 1000,
      gpuMemoryUtilization: 0.5,
      threads: 2,
      kernelPageSize: 8,
      enablePrefixCaching: false,
      enableMixedBatch: true,
      enableGraphs: false,
      debugChecks: true,
    });
  });

  test("name a CPU library wherever the CPU may be used, and a CUDA library where there is one", () => {
    expect(optionsOf("--device", "cpu").cpuLibrary).toEndWith("libgranary_cpu.so");
    expect(optionsOf("--device", "cuda").cpuLibrary).toBeUndefined();
  });
});
