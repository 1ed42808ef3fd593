/**
 * What a user can have got wrong is said before the device is touched, or before any of its memory is taken.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineOptions } from "../../src/engine/engine-options";
import { kernelCompilation } from "../../src/engine/kernel-compilation";
import { loadEngine } from "../../src/engine/load-engine";
import { openCpuDevice } from "../support/cpu-device";
import { smallConfig } from "../support/decoder-config";
import { decoderTensors } from "../support/decoder-tensors";
import { expectError } from "../support/expect-error";
import { noRuntimeKernels } from "../support/runtime-kernels";
import { bfloat16Tensor, type FileTensor, writeIndex, writeSafetensors } from "../support/safetensors-file";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const device = openCpuDevice();
afterAll(() => device.close());

const config = { ...smallConfig, tie_word_embeddings: false };

const options: EngineOptions = {
  modelDirectory: "",
  loadFormat: "auto",
  seed: 0,
  device: "cpu",
  cpuLibrary: undefined,
  cudaLibrary: undefined,
  dtype: "auto",
  kvCacheDtype: "auto",
  maxModelLen: undefined,
  maxNumSeqs: 4,
  maxNumBatchedTokens: 64,
  prefixGranularity: 16,
  numLcmBlocks: 8,
  gpuMemoryUtilization: 0.9,
  cpuCacheBytes: undefined,
  enablePrefixCaching: true,
  enableMixedBatch: false,
  enableOverlap: undefined,
  enableGraphs: false,
  threads: 1,
  kernelPageSize: undefined,
  debugChecks: true,
  endTokens: [],
  runtimeKernels: noRuntimeKernels,
  cublasLt: undefined,
};

function tensors(): Record<string, FileTensor> {
  return Object.fromEntries(
    Object.entries(decoderTensors(config)).map(([name, shape]) => {
      const count = shape.reduce((product, extent) => product * extent, 1);
      return [name, bfloat16Tensor(shape, Array(count).fill(0.5))];
    }),
  );
}

/** A directory with a sound configuration and, unless it is spoiled, sound weights. */
function modelDirectory(spoil: (directory: string) => void = () => {}): string {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "config.json"), JSON.stringify(config));
  writeSafetensors(join(directory, "model.safetensors"), tensors());
  spoil(directory);
  return directory;
}

/** Loads, and counts how often the device was asked for. */
function load(changes: Partial<EngineOptions>) {
  let numOpened = 0;
  const engine = () =>
    loadEngine(
      { ...options, ...changes },
      {
        post: () => {},
        clock: () => 0,
        randomUint32: () => 0,
        openDevice: () => {
          numOpened++;
          return { device, remark: "of the test" };
        },
      },
    );
  return { engine, numOpened: () => numOpened };
}

const without = (name: string, held: Record<string, FileTensor>) => {
  const { [name]: _, ...rest } = held;
  return rest;
};

describe("before the device is opened", () => {
  const norm = "model.norm.weight";
  const faults: Readonly<Record<string, readonly [(directory: string) => void, string, ...string[]]>> = {
    "a configuration that is no JSON": [
      (directory) => writeFileSync(join(directory, "config.json"), "{"),
      "invalid_config",
      "config.json",
    ],
    "an option that would change the answer": [
      (directory) =>
        writeFileSync(join(directory, "config.json"), JSON.stringify({ ...config, hidden_act: "gelu" })),
      "unsupported_config",
      "config.json",
      "hidden_act",
    ],
    "a truncated file": [
      (directory) => {
        const path = join(directory, "model.safetensors");
        truncateSync(path, statSync(path).size - 1);
      },
      "invalid_checkpoint",
      "model.safetensors",
      "truncated",
    ],
    "a missing tensor": [
      (directory) => writeSafetensors(join(directory, "model.safetensors"), without(norm, tensors())),
      "invalid_checkpoint",
      `'${norm}'`,
    ],
    "a tensor too many": [
      (directory) =>
        writeSafetensors(join(directory, "model.safetensors"), {
          ...tensors(),
          stray: bfloat16Tensor([1], [0]),
        }),
      "invalid_checkpoint",
      "'stray'",
    ],
    "a tensor of another shape": [
      (directory) =>
        writeSafetensors(join(directory, "model.safetensors"), {
          ...tensors(),
          [norm]: bfloat16Tensor([1], [0]),
        }),
      "invalid_checkpoint",
      `'${norm}'`,
      "[48]",
    ],
    "a missing shard": [
      (directory) => {
        copyFileSync(join(directory, "model.safetensors"), join(directory, "model-1.safetensors"));
        const names = Object.keys(tensors());
        writeIndex(
          directory,
          Object.fromEntries(
            names.map((name, i) => [name, i === 0 ? "model-2.safetensors" : "model-1.safetensors"]),
          ),
        );
      },
      "invalid_checkpoint",
      "model-",
    ],
  };
  for (const [name, [spoil, code, ...texts]] of Object.entries(faults)) {
    test(`${name} is refused`, () => {
      const { engine, numOpened } = load({ modelDirectory: modelDirectory(spoil) });
      expectError(engine, code, ...texts);
      expect(numOpened()).toBe(0);
    });
  }
});

describe("a kernel to be compiled", () => {
  test("is refused with what is wrong with the compiler that was named", () => {
    const kernels = { ...noRuntimeKernels, source: "kernels.cuh", nvrtc: "/nowhere/nvrtc.so" };
    const compile = kernelCompilation(kernels, "sm_90a");
    expectError(
      () => compile({ kind: "decode", dim: 80 } as never),
      "native_unsupported",
      "/nowhere/nvrtc.so does not exist",
    );
  });
});

describe("before memory is taken", () => {
  test("a context beyond the model's is refused", () => {
    const { engine } = load({ modelDirectory: modelDirectory(), maxModelLen: 513 });
    expectError(engine, "invalid_option", "--max-model-len 513", "512 positions");
    expect(device.allocations.size).toBe(0);
  });

  test("weights that do not fit together are refused with what they need and what is free", () => {
    // 24 GiB a layer: one might fit, 200 fit nowhere.
    const tall = {
      ...config,
      num_hidden_layers: 200,
      intermediate_size: Math.floor(2 ** 32 / config.hidden_size),
    };
    const directory = modelDirectory((path) =>
      writeFileSync(join(path, "config.json"), JSON.stringify(tall)),
    );
    const { engine } = load({ modelDirectory: directory, loadFormat: "dummy" });
    expectError(engine, "native_out_of_memory", "no room for the weights", "MiB asked", "MiB free");
    expect(device.allocations.size).toBe(0);
  });
});

describe("a sound model", () => {
  test("loads, reports what it built, and gives everything back", () => {
    const { engine, numOpened } = load({ modelDirectory: modelDirectory() });
    const built = engine();
    expect(numOpened()).toBe(1);
    expect(built.limits).toMatchObject({
      vocabSize: 97,
      prefixGranularity: 16,
      numLcmBlocks: 8,
      maxNumSeqs: 4,
    });
    expect(built.report.join("\n")).toContain("1 safetensors file");
    expect(device.allocations.size).toBeGreaterThan(0);
    built.close();
    expect(device.allocations.size).toBe(0);
  });
});
