/** Argument blocks: what is written is what native code reads, and what cannot be held is refused. */
import { describe, expect, test } from "bun:test";
import { ArgumentBlock, layoutOf, writeField } from "../../ffi/argument-block";
import { bytesAt } from "../../ffi/host-memory";
import { expectError } from "../support/expect-error";

const schema = {
  address: "address",
  int64: "int64",
  float64: "float64",
  int32: "int32",
  uint32: "uint32",
  float32: "float32",
} as const;

/** The block's memory as C sees it. */
function memoryOf(block: ArgumentBlock<typeof schema>): DataView {
  const bytes = bytesAt(block.pointer, block.bytes);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

describe("the layout", () => {
  test("puts each field at its own size and fills up to eight bytes", () => {
    const { offsets, bytes } = layoutOf(schema);
    expect(offsets).toEqual({ address: 0, int64: 8, float64: 16, int32: 24, uint32: 28, float32: 32 });
    expect(bytes).toBe(40);
  });

  test("refuses a schema that a compiler would pad", () => {
    expect(() => layoutOf({ a: "int32", b: "int64" })).toThrow("field b would need padding");
  });
});

describe("integers", () => {
  const values64 = [
    0,
    1,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 31 + 1,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 32 + 1,
    2 ** 52,
    2 ** 53 - 1,
  ];

  test("of 64 bits come back and are there in memory", () => {
    const block = new ArgumentBlock(schema);
    for (const value of values64) {
      block.setAll({ address: value, int64: -value });
      expect([block.get("address"), block.get("int64")]).toEqual([value, -value || 0]);
      expect(memoryOf(block).getBigUint64(0, true)).toBe(BigInt(value));
      expect(memoryOf(block).getBigInt64(8, true)).toBe(-BigInt(value));
    }
  });

  test("of 32 bits come back and are there in memory", () => {
    const block = new ArgumentBlock(schema);
    for (const value of [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)]) {
      block.set("int32", value);
      expect([block.get("int32"), memoryOf(block).getInt32(24, true)]).toEqual([value, value]);
    }
    for (const value of [0, 1, 2 ** 31, 2 ** 32 - 1]) {
      block.set("uint32", value);
      expect([block.get("uint32"), memoryOf(block).getUint32(28, true)]).toEqual([value, value]);
    }
  });

  test("that would arrive as another number are refused, and the field keeps its value", () => {
    const faulty = {
      address: [-1, 2 ** 53, 1.5, Number.NaN, Number.POSITIVE_INFINITY],
      int64: [2 ** 53, -(2 ** 53), 0.5, Number.NaN],
      int32: [2 ** 31, -(2 ** 31) - 1, 2 ** 32, 1.5, Number.NaN],
      uint32: [-1, 2 ** 32, 1.5, Number.NaN],
      float32: [undefined as unknown as number, "1" as unknown as number],
    } as const;
    for (const [name, values] of Object.entries(faulty) as [keyof typeof faulty, readonly number[]][]) {
      for (const value of values) {
        const block = new ArgumentBlock(schema, { [name]: 7 });
        expectError(() => block.set(name, value), "native_invalid", `type ${schema[name]}`);
        expect(block.get(name)).toBe(7);
      }
    }
  });

  test("are offsets in 64 bits: page 70,000 of a 65,536-byte stride", () => {
    const view = new DataView(new ArrayBuffer(8));
    writeField(view, 0, "int64", 70_000 * 65_536);
    expect(view.getBigInt64(0, true)).toBe(4_587_520_000n);
  });
});

describe("a block", () => {
  test("keeps doubles exactly and rounds floats once", () => {
    const block = new ArgumentBlock(schema, { float64: 0.1, float32: 0.1 });
    expect(block.get("float64")).toBe(0.1);
    expect(block.get("float32")).toBe(Math.fround(0.1));
  });

  test("starts at zero and changes only what is set", () => {
    const block = new ArgumentBlock(schema, { int32: 5 });
    block.set("uint32", 6);
    expect(Object.keys(schema).map((name) => block.get(name as keyof typeof schema))).toEqual([
      0, 0, 0, 5, 6, 0,
    ]);
  });

  test("refuses a field it does not have", () => {
    const block = new ArgumentBlock(schema);
    expectError(() => block.set("int33" as "int32", 1), "native_invalid", "'int33'");
    expectError(() => block.setAll({ toString: 1 } as object), "native_invalid", "'toString'");
  });
});
