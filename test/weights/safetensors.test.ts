/** Headers of safetensors files: every number is checked against the file before anything is believed. */
import { describe, expect, test } from "bun:test";
import { closeSync, ftruncateSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { mapFile } from "../../ffi/mmap";
import { readSafetensorsHeader } from "../../src/weights/safetensors";
import { expectError } from "../support/expect-error";
import { safetensorsBytes } from "../support/safetensors-file";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

function read(bytes: Uint8Array) {
  const path = join(temporaryDirectory(), "model.safetensors");
  writeFileSync(path, bytes);
  using file = mapFile(path);
  return readSafetensorsHeader(file);
}

/** Refused within a second, with file and reason named. */
function expectRefused(bytes: Uint8Array, ...texts: string[]): void {
  const startedMs = performance.now();
  expectError(() => read(bytes), "invalid_checkpoint", "model.safetensors: ", ...texts);
  expect(performance.now() - startedMs).toBeLessThan(1000);
}

const eightBytes = new Uint8Array(8);
const entry = (over: object = {}) => ({ dtype: "F32", shape: [2], data_offsets: [0, 8], ...over });
const withEntry = (over: object) => safetensorsBytes({ "a.weight": entry(over) }, eightBytes);

describe("a sound header", () => {
  test("gives names, shapes and places in the file", () => {
    const header = { __metadata__: { format: "pt" }, a: entry(), b: entry({ data_offsets: [8, 16] }) };
    const bytes = safetensorsBytes(header, new Uint8Array(16));
    const dataOffset = bytes.length - 16;
    expect(read(bytes)).toEqual([
      { name: "a", dtype: "F32", shape: [2], offsetBytes: dataOffset, lengthBytes: 8 },
      { name: "b", dtype: "F32", shape: [2], offsetBytes: dataOffset + 8, lengthBytes: 8 },
    ]);
  });

  test("may hold scalars, empty tensors, padding spaces and every dtype of the format", () => {
    const widths = { BOOL: 1, U8: 1, I8: 1, F8_E4M3: 1, F8_E5M2: 1, F8_E8M0: 1, U16: 2, I16: 2, F16: 2 };
    const more = { BF16: 2, U32: 4, I32: 4, F32: 4, U64: 8, I64: 8, F64: 8 };
    const header = Object.fromEntries(
      Object.entries({ ...widths, ...more }).map(([dtype, width]) => [
        dtype,
        { dtype, shape: [], data_offsets: [0, 0 + width] },
      ]),
    );
    for (const [name, tensor] of Object.entries(header)) {
      expect(read(safetensorsBytes(`${JSON.stringify({ [name]: tensor })}   `, eightBytes))).toHaveLength(1);
    }
    const empty = { a: entry({ shape: [0, 7], data_offsets: [0, 0] }), b: entry() };
    expect(read(safetensorsBytes(empty, eightBytes)).map(({ lengthBytes }) => lengthBytes)).toEqual([0, 8]);
  });

  test("may quote anything in a name, and mention a name twice inside values", () => {
    const name = 'odd "name" : { [ \\ }';
    const header = {
      __metadata__: { a: "a", note: '"a":' },
      [name]: entry(),
      __proto: entry({ data_offsets: [8, 16] }),
    };
    const entries = read(safetensorsBytes(header, new Uint8Array(16)));
    expect(entries.map((tensor) => tensor.name)).toEqual([name, "__proto"]);
  });
});

describe("a file that is cut short", () => {
  test("before its header is complete is refused", () => {
    expectRefused(new Uint8Array(7), "too few");
    expectRefused(withEntry({}).subarray(0, 20), "truncated");
  });

  test("by one byte of the last tensor is refused with the tensor's name", () => {
    expectRefused(withEntry({}).slice(0, -1), "'a.weight'", "truncated");
  });
});

describe("a header that lies about its length", () => {
  for (const length of [2n ** 40n, 2n ** 63n, 2n ** 64n - 1n]) {
    test(`of ${length} bytes is refused without reading that much`, () => {
      const bytes = withEntry({});
      new DataView(bytes.buffer).setBigUint64(0, length, true);
      expectRefused(bytes, "header claims");
    });
  }

  test("beyond the file's end is refused", () => {
    const bytes = withEntry({});
    new DataView(bytes.buffer).setBigUint64(0, BigInt(bytes.length), true);
    expectRefused(bytes, "ends beyond the file");
  });

  test("is refused cheaply even where the file is as long as the header claims", () => {
    const path = join(temporaryDirectory(), "model.safetensors");
    const descriptor = openSync(path, "w");
    ftruncateSync(descriptor, 2 ** 41);
    writeSync(descriptor, new Uint8Array(BigUint64Array.of(2n ** 40n).buffer), 0, 8, 0);
    closeSync(descriptor);
    using file = mapFile(path);
    const before = process.memoryUsage().rss;
    expectError(() => readSafetensorsHeader(file), "invalid_checkpoint", path, "header claims");
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
  });
});

describe("a header that is not what it should be", () => {
  test("in its form is refused", () => {
    expectRefused(safetensorsBytes("no JSON at all"), "not JSON");
    for (const text of ["[]", "null", "3", '"text"']) expectRefused(safetensorsBytes(text), "not an object");
    for (const raw of [null, 3, "F32", [0, 8]]) {
      expectRefused(safetensorsBytes({ "a.weight": raw }, eightBytes), "'a.weight'");
    }
  });

  test("in a dtype is refused", () => {
    for (const dtype of ["Q9", "f32", "", 32, null, "toString"]) {
      expectRefused(withEntry({ dtype }), "'a.weight'", "dtype");
    }
  });

  test("in a shape is refused", () => {
    for (const shape of [undefined, 2, "2", [-1], [1.5], ["2"], [null], [2 ** 53], [[2]]]) {
      expectRefused(withEntry({ shape }), "'a.weight'");
    }
  });

  test("in its offsets is refused", () => {
    for (const range of [
      undefined,
      [],
      [0],
      [0, 4, 8],
      [8, 0],
      [-8, 0],
      [0, 8.5],
      ["0", "8"],
      [0, 2 ** 60],
    ]) {
      expectRefused(withEntry({ data_offsets: range }), "'a.weight'");
    }
    expectRefused(withEntry({ data_offsets: [0, 16], shape: [4] }), "'a.weight'", "truncated");
  });

  test("in the bytes of a shape is refused, also where the product overflows", () => {
    expectRefused(withEntry({ shape: [3] }), "'a.weight' has 8 bytes, its shape needs 12");
    expectRefused(withEntry({ shape: [2 ** 31, 2 ** 31, 2 ** 31] }), "'a.weight'");
    expectRefused(withEntry({ shape: [2 ** 52, 2 ** 52, 0], data_offsets: [0, 8] }), "'a.weight'");
  });

  test("in two tensors that overlap is refused", () => {
    const header = { first: entry(), second: entry({ shape: [1], data_offsets: [4, 8] }) };
    expectRefused(safetensorsBytes(header, eightBytes), "'second'", "overlaps");
    expectRefused(safetensorsBytes({ first: entry(), second: entry() }, eightBytes), "overlaps");
  });

  test("in a name that stands twice is refused, however it is written", () => {
    const tensor = JSON.stringify(entry());
    for (const twin of ['"a"', '"\\u0061"']) {
      expectRefused(safetensorsBytes(`{"a": ${tensor}, ${twin}: ${tensor}}`, eightBytes), "twice");
    }
  });
});

describe("a header of many tensors", () => {
  test("is read in well under a second", () => {
    const header = Object.fromEntries(
      Array.from({ length: 40_000 }, (_, i) => [
        `model.layers.${i}.weight`,
        entry({ shape: [1], data_offsets: [4 * i, 4 * i + 4] }),
      ]),
    );
    const bytes = safetensorsBytes(header, new Uint8Array(160_000));
    const startedMs = performance.now();
    expect(read(bytes)).toHaveLength(40_000);
    expect(performance.now() - startedMs).toBeLessThan(1000);
  });
});
