/** The argument blocks mirror the C header: every struct, field by field, every number, every symbol. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type BlockSchema, type FieldType, layoutOf } from "../../ffi/argument-block";
import * as blocks from "../../ffi/blocks";
import { dtypeBytes, dtypes } from "../../ffi/device";
import { nativeStatus } from "../../ffi/errors";
import { abiVersion, deviceInfoTextBytes, symbolOf } from "../../ffi/library";
import { routings } from "../../src/layers/moe";
import { type CMember, readHeader } from "../support/c-header";

const header = readHeader(join(import.meta.dir, "../../cuda/include/granary.h"));

const fieldTypes: Readonly<Record<string, FieldType>> = {
  granary_address: "address",
  int64_t: "int64",
  int32_t: "int32",
  uint32_t: "uint32",
  float: "float32",
  double: "float64",
};

/** Members with embedded structs unfolded and text arrays left out. */
function flatMembers(name: string): readonly CMember[] {
  const members = header.structs.get(name) ?? [];
  return members.flatMap((member) =>
    header.structs.has(member.type) ? flatMembers(member.type) : member.type === "char" ? [] : [member],
  );
}

/** The block that mirrors a struct, by name: GranaryRmsNorm is rmsNormBlock. */
function blockOf(struct: string): BlockSchema {
  const base = struct.replace(/^Granary/, "");
  const name = `${base.charAt(0).toLowerCase()}${base.slice(1)}Block`;
  const schema = (blocks as Record<string, unknown>)[name];
  if (schema === undefined) throw new Error(`blocks.ts has no ${name}`);
  return schema as BlockSchema;
}

/** rmsNorm from RMS_NORM. */
function camelCase(constant: string): string {
  return constant.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Numbers of an enum without its prefix. */
function numbersOf(name: string, prefix: string): Record<string, number> {
  const entries = Object.entries<number>(header.enums.get(name) ?? {});
  return Object.fromEntries(
    entries.map(([constant, value]) => [camelCase(constant.slice(prefix.length)), value]),
  );
}

describe("argument blocks", () => {
  test("are as many as the header's structs", () => {
    const mirrors = Object.keys(blocks).filter((name) => name.endsWith("Block"));
    expect(header.structs.size).toBeGreaterThan(20);
    expect(mirrors).toHaveLength(header.structs.size);
  });

  for (const struct of header.structs.keys()) {
    test(`${struct} is mirrored field by field`, () => {
      const expected = flatMembers(struct).map(
        ({ name, type }) => [name, fieldTypes[type] ?? ("unknown" as FieldType)] as [string, FieldType],
      );
      expect(Object.entries(blockOf(struct))).toEqual(expected);
      // Every field at its natural alignment, so that no compiler pads.
      expect(() => layoutOf(blockOf(struct))).not.toThrow();
    });
  }

  test("the texts of the device's description follow its numbers", () => {
    const texts = header.structs.get("GranaryDeviceInfo")?.filter(({ type }) => type === "char");
    expect(texts?.map(({ name, extent }) => [name, extent])).toEqual([
      ["name", deviceInfoTextBytes],
      ["features", deviceInfoTextBytes],
    ]);
  });
});

describe("numbers", () => {
  test("of the structs are the header's", () => {
    expect(numbersOf("GranaryOp", "GRANARY_OP_")).toEqual({ ...blocks.structNumbers });
  });

  test("of dtypes, routings and the ABI are the header's", () => {
    const { f32, bf16, f16, i32 } = numbersOf("GranaryDtype", "GRANARY_");
    expect(dtypes).toEqual({ float32: f32, bfloat16: bf16, float16: f16, int32: i32 } as typeof dtypes);
    expect(Object.keys(dtypeBytes)).toEqual(Object.keys(dtypes));
    const routing = numbersOf("GranaryRouting", "GRANARY_");
    expect(routings).toEqual({
      softmaxTopK: routing.softmaxTopk,
      softmaxTopKNormalised: routing.softmaxTopkNorm,
      topKSoftmax: routing.topkSoftmax,
    } as typeof routings);
    expect(header.defines.GRANARY_ABI_VERSION).toBe(abiVersion);
  });

  test("of statuses have the header's names", () => {
    for (const [name, status] of Object.entries<number>(header.enums.get("GranaryStatus") ?? {})) {
      expect(`GRANARY_${nativeStatus(status).toUpperCase()}`).toBe(name);
    }
    expect(nativeStatus(99)).toBe("device");
  });
});

describe("symbols", () => {
  test("every op takes one block and is declared", () => {
    for (const op of Object.keys(blocks.opSchemas) as blocks.OpName[]) {
      expect([op, header.functions.get(symbolOf(op))]).toEqual([op, 1]);
    }
  });

  test("every declared function is bound", async () => {
    const source = await Bun.file(join(import.meta.dir, "../../ffi/library.ts")).text();
    const ops = new Set((Object.keys(blocks.opSchemas) as blocks.OpName[]).map(symbolOf));
    const unbound = [...header.functions.keys()].filter(
      (name) => !ops.has(name) && !source.includes(`${name}:`),
    );
    expect(header.functions.size).toBeGreaterThan(40);
    expect(unbound).toEqual([]);
  });
});
