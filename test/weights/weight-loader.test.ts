/** Tensors on their way into prepared weights: stacked, widened, used in place, counted. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Dtype } from "../../ffi/device";
import { openCheckpoint } from "../../src/weights/checkpoint";
import { openSynthetic } from "../../src/weights/synthetic";
import { type Weight, WeightLoader } from "../../src/weights/weight-loader";
import { openCpuDevice } from "../support/cpu-device";
import { expectError } from "../support/expect-error";
import {
  bfloat16Tensor,
  type FileTensor,
  float32Tensor,
  writeSafetensors,
} from "../support/safetensors-file";
import { syntheticValues } from "../support/synthetic-values";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const device = openCpuDevice();
afterAll(() => device.close());

function sourceOf(tensors: Readonly<Record<string, FileTensor>>, misalignment = 0) {
  const directory = temporaryDirectory();
  writeSafetensors(join(directory, "model.safetensors"), tensors, { misalignment });
  return openCheckpoint(directory);
}

function floatsAt(address: number, count: number, dtype: Dtype): number[] {
  if (dtype === "float32") {
    const values = new Float32Array(count);
    device.download(values, address);
    return [...values];
  }
  const bits = new Uint16Array(count);
  device.download(bits, address);
  return [...new Float32Array(Uint32Array.from(bits, (half) => half << 16).buffer)];
}

const valuesOf = (weight: Weight) => floatsAt(weight.address, weight.rows * weight.columns, weight.dtype);

const halfTensor = (shape: readonly number[], bits: readonly number[]): FileTensor => ({
  dtype: "F16",
  shape,
  bytes: new Uint8Array(Uint16Array.from(bits).buffer),
});

describe("a matrix", () => {
  test("of several tensors has their rows one after another", () => {
    using source = sourceOf({
      q: bfloat16Tensor([2, 3], [1, 2, 3, 4, 5, 6]),
      k: bfloat16Tensor([1, 3], [7, 8, 9]),
    });
    const parts = [
      { name: "q", rows: 2 },
      { name: "k", rows: 1 },
    ];
    const weight = new WeightLoader(device, source, "float32").matrix(parts, 3);
    expect(weight).toMatchObject({ dtype: "bfloat16", rows: 3, columns: 3 });
    expect(valuesOf(weight)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test("of one tensor in the prepared layout is used where it lies in the file", () => {
    using source = sourceOf({ a: bfloat16Tensor([2, 2], [1, 2, 3, 4]), b: float32Tensor([1, 2], [5, 6]) });
    const loader = new WeightLoader(device, source, "float32");
    for (const [name, rows] of [
      ["a", 2],
      ["b", 1],
    ] as const) {
      const data = source.data(name, [rows, 2]);
      const weight = loader.matrix([{ name, rows }], 2);
      expect(data.kind === "mapped" && data.address).toBe(weight.address);
    }
  });

  test("keeps bfloat16 under float32 arithmetic only while every part has it", () => {
    using source = sourceOf({
      a: bfloat16Tensor([1, 2], [1, 2]),
      b: float32Tensor([1, 2], [3.1, 4.1]),
      c: halfTensor([1, 2], [0x3e00, 0x0001]),
    });
    const loader = new WeightLoader(device, source, "float32");
    const parts = ["a", "b", "c"].map((name) => ({ name, rows: 1 }));
    const weight = loader.matrix(parts, 2);
    expect(weight.dtype).toBe("float32");
    expect(valuesOf(weight)).toEqual([1, 2, Math.fround(3.1), Math.fround(4.1), 1.5, 2 ** -24]);
  });

  test("is rounded to bfloat16 where that is what is computed in", () => {
    using source = sourceOf({ a: float32Tensor([1, 3], [1, 1 + 2 ** -9, 1 + 3 * 2 ** -8]) });
    const weight = new WeightLoader(device, source, "bfloat16").matrix([{ name: "a", rows: 1 }], 3);
    expect(weight.dtype).toBe("bfloat16");
    // Ties go to the even neighbour.
    expect(valuesOf(weight)).toEqual([1, 1, 1 + 2 ** -6]);
  });

  test("is read from any byte of a file, even an odd one", () => {
    for (const misalignment of [1, 2, 3]) {
      const values = Array.from({ length: 40 }, (_, i) => i - 20);
      using source = sourceOf(
        { a: float32Tensor([4, 10], values), b: bfloat16Tensor([4, 10], values) },
        misalignment,
      );
      const loader = new WeightLoader(device, source, "float32");
      const both = ["a", "b"].map((name) => ({ name, rows: 4 }));
      expect(valuesOf(loader.matrix(both, 10))).toEqual([...values, ...values]);
      expect(valuesOf(loader.matrix([{ name: "b", rows: 4 }], 10))).toEqual(values);
    }
  });

  test("of synthetic parts counts each part's elements from its own begin", () => {
    using source = openSynthetic(temporaryDirectory(), 4);
    const parts = ["x", "y"].map((name) => ({ name, rows: 3 }));
    const weight = new WeightLoader(device, source, "float32").matrix(parts, 5);
    const expected = parts.flatMap(({ name }) => [
      ...syntheticValues(4, name, { shape: [3, 5], scale: 1 / Math.sqrt(5), offset: 0 }),
    ]);
    expect(valuesOf(weight)).toEqual(expected);
  });

  test("of integers is refused", () => {
    using source = sourceOf({ a: { dtype: "I32", shape: [1, 1], bytes: new Uint8Array(4) } });
    const loader = new WeightLoader(device, source, "float32");
    expectError(() => loader.matrix([{ name: "a", rows: 1 }], 1), "invalid_checkpoint", "'a'", "integers");
  });
});

describe("vectors", () => {
  test("are float32 whatever the file holds, one after another", () => {
    using source = sourceOf({
      a: bfloat16Tensor([2], [1, -2]),
      b: float32Tensor([1], [0.1]),
      c: halfTensor([3], [0x3c00, 0x4000, 0xc200]),
    });
    const parts = [
      { name: "a", rows: 2 },
      { name: "b", rows: 1 },
      { name: "c", rows: 3 },
    ];
    const address = new WeightLoader(device, source, "bfloat16").vector(parts);
    expect(floatsAt(address, 6, "float32")).toEqual([1, -2, Math.fround(0.1), 1, 2, -3]);
  });
});

describe("progress", () => {
  test("grows with every tensor, those used in place included, up to what was loaded", () => {
    using source = sourceOf({
      a: bfloat16Tensor([2, 2], [1, 2, 3, 4]),
      b: bfloat16Tensor([1, 2], [1, 2]),
      c: bfloat16Tensor([3, 2], [1, 2, 3, 4, 5, 6]),
      d: float32Tensor([2], [1, 2]),
    });
    const seen: [number, string][] = [];
    const loader = new WeightLoader(device, source, "float32", (bytes, name) => seen.push([bytes, name]));
    loader.matrix([{ name: "a", rows: 2 }], 2);
    loader.matrix(
      [
        { name: "b", rows: 1 },
        { name: "c", rows: 3 },
      ],
      2,
    );
    loader.vector([{ name: "d", rows: 2 }]);
    expect(seen).toEqual([
      [8, "a"],
      [12, "b"],
      [24, "c"],
      [32, "d"],
    ]);
    expect(loader.loadedBytes).toBe(32);
  });
});
