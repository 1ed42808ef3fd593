/**
 * Synthetic weights: the published hashes of every tensor,
 * on the device, and scales by name where no recipe is.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dtypes } from "../../ffi/device";
import { defaultScale, openSynthetic, syntheticKey } from "../../src/weights/synthetic";
import type { SyntheticTensor, TensorSource } from "../../src/weights/tensor-source";
import { openCpuDevice } from "../support/cpu-device";
import { expectError } from "../support/expect-error";
import { safetensorsBytes } from "../support/safetensors-file";
import { syntheticBits } from "../support/synthetic-values";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const device = openCpuDevice();
afterAll(() => device.close());

interface Recipe {
  readonly seed: number;
  readonly tensors: Readonly<
    Record<string, { shape: readonly number[]; scale: number; offset: number; sha256: string }>
  >;
}

const reference = join(import.meta.dir, "../fixtures/reference");

function recipeOf(name: string): Recipe {
  return JSON.parse(readFileSync(join(reference, name, "weights.json"), "utf8"));
}

function syntheticOf(source: TensorSource, name: string, shape: readonly number[]): SyntheticTensor {
  const data = source.data(name, shape);
  if (data.kind !== "synthetic") throw new Error(`${name} is not synthetic`);
  return data;
}

/** bfloat16 bits as the device makes them. */
function bitsOnDevice({ a, b, scale, offset }: SyntheticTensor, shape: readonly number[]): Uint16Array {
  const columns = shape.at(-1) ?? 1;
  const rows = shape.reduce((product, extent) => product * extent, 1) / columns;
  const prepared = device.allocate(2 * rows * columns, "a synthetic tensor");
  const place = { prepared, rows, columns, totalRows: rows, sourceStride: columns };
  device.synthesize({ ...place, sourceDtype: dtypes.bfloat16, dtype: dtypes.bfloat16, a, b, scale, offset });
  const bits = new Uint16Array(rows * columns);
  device.download(bits, prepared);
  device.free(prepared);
  return bits;
}

const hashOf = (bits: Uint16Array) =>
  createHash("sha256").update(new Uint8Array(bits.buffer)).digest("hex").slice(0, 16);

describe("a recipe", () => {
  for (const name of ["llama", "mistral-swa", "qwen3", "qwen3-moe"]) {
    test(`of ${name} gives every tensor the hash it was published with`, () => {
      const { tensors } = recipeOf(name);
      using source = openSynthetic(join(reference, name));
      const hashes = Object.entries(tensors).map(([tensor, { shape }]) => [
        tensor,
        hashOf(bitsOnDevice(syntheticOf(source, tensor, shape), shape)),
      ]);
      expect(hashes).toEqual(Object.entries(tensors).map(([tensor, { sha256 }]) => [tensor, sha256]));
    });
  }

  test("lists exactly its tensors, whatever the seed on the command line", () => {
    const { seed, tensors } = recipeOf("llama");
    using source = openSynthetic(join(reference, "llama"), 99);
    expect(source.list()?.map((info) => info.name)).toEqual(Object.keys(tensors));
    expect(source.find("model.norm.weight")).toMatchObject({ shape: [128], dtype: "BF16" });
    expect(source.find("model.norm.bias")).toBeUndefined();
    expect(source.description).toContain(`seed ${seed}`);
    expect(syntheticOf(source, "lm_head.weight", [320, 128])).toMatchObject(
      syntheticKey(seed, "lm_head.weight"),
    );
  });

  test("that says nothing useful is refused with its file and tensor", () => {
    const directory = temporaryDirectory();
    const path = join(directory, "weights.json");
    const sound = { shape: [2], scale: 1, offset: 0 };
    const faulty: readonly (readonly [string, string])[] = [
      ["{", path],
      ["null", "seed"],
      ['{"seed": "1", "tensors": {}}', "seed"],
      ['{"seed": 1}', "tensors"],
      [JSON.stringify({ seed: 1, tensors: { "a.weight": { ...sound, scale: "1" } } }), "'a.weight'"],
      [JSON.stringify({ seed: 1, tensors: { "a.weight": { ...sound, shape: [-1] } } }), "'a.weight'"],
      [JSON.stringify({ seed: 1, tensors: { "a.weight": null } }), "'a.weight'"],
    ];
    for (const [text, reason] of faulty) {
      writeFileSync(path, text);
      expectError(() => openSynthetic(directory), "invalid_checkpoint", path, reason);
    }
  });

  test("takes integers from the file beside it", () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "weights.json"), JSON.stringify({ seed: 1, tensors: {} }));
    const header = {
      "weights/table": { dtype: "I32", shape: [2], data_offsets: [0, 8] },
      logits: { dtype: "F32", shape: [1], data_offsets: [8, 12] },
    };
    const data = new Uint8Array(Int32Array.of(7, 9, 0).buffer);
    writeFileSync(join(directory, "reference.safetensors"), safetensorsBytes(header, data));
    using source = openSynthetic(directory);
    expect(source.list()?.map(({ name, dtype }) => [name, dtype])).toEqual([["table", "I32"]]);
    expect(source.data("table", [2])).toMatchObject({ kind: "mapped", dtype: "int32" });
    expect(source.find("logits")).toBeUndefined();
  });
});

describe("without a recipe", () => {
  test("any tensor can be made up, and none is listed", () => {
    using source = openSynthetic(temporaryDirectory(), 5);
    expect(source.list()).toBeUndefined();
    expect(source.find("model.norm.weight")).toBeUndefined();
    expect(source.description).toContain("seed 5");
    expect(syntheticOf(source, "model.norm.weight", [64])).toEqual({
      kind: "synthetic",
      ...syntheticKey(5, "model.norm.weight"),
      scale: 0.1,
      offset: 1,
    });
  });

  test("scales follow what a tensor is for", () => {
    expect(defaultScale("model.layers.0.mlp.up_proj.weight", [256, 64])).toEqual({ scale: 1 / 8, offset: 0 });
    expect(defaultScale("lm_head.weight", [1000, 64])).toEqual({ scale: 2 / 8, offset: 0 });
    expect(defaultScale("model.embed_tokens.weight", [1000, 64])).toEqual({ scale: 2 / 8, offset: 0 });
    expect(defaultScale("model.layers.0.input_layernorm.weight", [64])).toEqual({ scale: 0.1, offset: 1 });
    expect(defaultScale("model.layers.0.self_attn.q_proj.bias", [64])).toEqual({ scale: 0.1, offset: 0 });
    expect(defaultScale("model.layers.0.norm.bias", [64])).toEqual({ scale: 0.1, offset: 0 });
  });

  test("another seed or name gives other values, the same gives the same", () => {
    const key = syntheticKey(1, "a");
    expect(syntheticKey(1, "a")).toEqual(key);
    expect(syntheticKey(2, "a")).not.toEqual(key);
    expect(syntheticKey(1, "b")).not.toEqual(key);
  });
});

describe("the kernel", () => {
  test("agrees with the rule written out in plain arithmetic, in rows of any length", () => {
    for (const shape of [[1], [7], [3, 5], [16, 33], [2, 1000]]) {
      const recipe = { shape, scale: 0.3, offset: -0.7 };
      const name = `tensor of ${shape}`;
      const tensor = { kind: "synthetic", ...syntheticKey(3, name), scale: 0.3, offset: -0.7 } as const;
      expect(bitsOnDevice(tensor, shape)).toEqual(syntheticBits(3, name, recipe));
    }
  });
});
