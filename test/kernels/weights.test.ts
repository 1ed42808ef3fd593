/**
 * Prepared weights: plain layout, every source dtype, ranges of rows and columns, and the synthetic values.
 */
import { ptr } from "bun:ffi";
import { afterAll, describe, expect, test } from "bun:test";
import { fromBfloat16, toBfloat16 } from "./support/bfloat16";
import { Buffers } from "./support/buffers";
import { loadCpuLibrary, openCpuDevice } from "./support/open-device";
import { Random } from "./support/random";

const device = openCpuDevice(await loadCpuLibrary(), { numThreads: 2 });
const buffers = new Buffers(device);
afterAll(() => {
  buffers.release();
  device.close();
});

const float32 = 0;
const bfloat16 = 1;
const float16 = 2;

/** Rows and columns of a source, in a prepared weight of 9 rows. */
const place = {
  sourceStride: 300,
  sourceRow: 2,
  sourceColumn: 7,
  rows: 5,
  columns: 290,
  row: 3,
  totalRows: 9,
};
const source = new Random(1).normals(8 * place.sourceStride);

function cutOf(values: Float32Array): Float32Array {
  const cut = new Float32Array(place.totalRows * place.columns);
  for (let r = 0; r < place.rows; r++) {
    const begin = (place.sourceRow + r) * place.sourceStride + place.sourceColumn;
    cut.set(values.subarray(begin, begin + place.columns), (place.row + r) * place.columns);
  }
  return cut;
}

function prepare(hostSource: number, sourceDtype: number, dtype: number): Float32Array {
  const bytes = device.weightBytes({ ...place, dtype });
  expect(bytes).toBe(place.totalRows * place.columns * (dtype === bfloat16 ? 2 : 4));
  const prepared = buffers.allocate(bytes);
  device.prepareWeight({ ...place, hostSource, prepared, sourceDtype, dtype });
  return buffers.floats(
    prepared,
    place.totalRows * place.columns,
    dtype === bfloat16 ? "bfloat16" : "float32",
  );
}

describe("preparing a weight", () => {
  const bf16Source = toBfloat16(source);
  const rounded = fromBfloat16(bf16Source);
  const f16Source = Float16Array.from(source);

  test("copies, widens and rounds to nearest even", () => {
    expect(prepare(ptr(source), float32, float32)).toEqual(cutOf(source));
    expect(prepare(ptr(source), float32, bfloat16)).toEqual(cutOf(rounded));
    expect(prepare(ptr(bf16Source), bfloat16, bfloat16)).toEqual(cutOf(rounded));
    expect(prepare(ptr(bf16Source), bfloat16, float32)).toEqual(cutOf(rounded));
    const wide = Float32Array.from(f16Source);
    expect(prepare(ptr(new Uint8Array(f16Source.buffer)), float16, float32)).toEqual(cutOf(wide));
    expect(prepare(ptr(new Uint8Array(f16Source.buffer)), float16, bfloat16)).toEqual(
      cutOf(fromBfloat16(toBfloat16(wide))),
    );
  });

  test("takes a source at an odd address", () => {
    const shifted = new Uint8Array(source.byteLength + 1);
    shifted.set(new Uint8Array(source.buffer), 1);
    expect(prepare(ptr(shifted) + 1, float32, float32)).toEqual(cutOf(source));
  });

  test("leaves the layout plain, so that a mapped file can stand in for it", () => {
    expect(device.isPlainWeight("float32")).toBe(true);
    expect(device.isPlainWeight("bfloat16")).toBe(true);
    expect(device.isPlainWeight("float16")).toBe(false);
  });

  test("refuses a range outside the prepared weight or the source row", () => {
    const prepared = buffers.allocate(device.weightBytes({ ...place, dtype: float32 }));
    const values = { ...place, hostSource: ptr(source), prepared, sourceDtype: float32, dtype: float32 };
    expect(() => device.prepareWeight({ ...values, row: 5 })).toThrow("row + rows");
    expect(() => device.prepareWeight({ ...values, sourceColumn: 11 })).toThrow("sourceStride");
    expect(() => device.prepareWeight({ ...values, sourceDtype: 3 })).toThrow("sourceDtype");
    expect(() => device.weightBytes({ ...place, dtype: float16 })).toThrow("dtype");
  });
});

/** The header's formula. */
function synthetic(index: number, a: number, b: number, scale: number, offset: number): number {
  const mix = (word: number) => {
    let x = word;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return (x ^ (x >>> 15)) >>> 0;
  };
  const hash = mix((mix((index ^ a) >>> 0) + b) >>> 0);
  const x = ((hash >>> 8) + 0.5) / 2 ** 23 - 1;
  return offset + scale * Math.sqrt(3) * x;
}

describe("synthetic weights", () => {
  const firstElement = 4_294_967_000; // indices wrap at 2^32
  const [a, b, scale, offset] = [0x9e37_79b9, 0xdead_beef, 0.02, 0.5];

  for (const dtype of [float32, bfloat16]) {
    test(`follow the hash in ${dtype === float32 ? "float32" : "bfloat16"}`, () => {
      const prepared = buffers.allocate(device.weightBytes({ ...place, dtype }));
      device.synthesize({ ...place, prepared, dtype, firstElement, a, b, scale, offset });
      const count = place.totalRows * place.columns;
      const actual = buffers.floats(prepared, count, dtype === bfloat16 ? "bfloat16" : "float32");
      const whole = Float32Array.from({ length: 8 * place.sourceStride }, (_, i) =>
        synthetic((firstElement + i) >>> 0, a, b, scale, offset),
      );
      expect(actual).toEqual(cutOf(fromBfloat16(toBfloat16(whole))));
    });
  }

  test("have the mean and the deviation that was asked for", () => {
    const [rows, columns] = [200, 500];
    const prepared = buffers.allocate(rows * columns * 4);
    const range = { sourceStride: columns, rows, columns, totalRows: rows };
    device.synthesize({ ...range, prepared, dtype: float32, a: 1, b: 2, scale: 0.1, offset: 1 });
    const values = buffers.floats(prepared, rows * columns, "float32");
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
    expect(mean).toBeCloseTo(1, 2);
    expect(Math.sqrt(variance)).toBeCloseTo(0.1, 2);
  });
});
