/** What the ops refuse: the text names op and argument, and nothing is written. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { FieldValues } from "../../ffi/argument-block";
import type { OpName, opSchemas } from "../../ffi/blocks";
import type { Device } from "../../ffi/device";
import { Buffers } from "./support/buffers";
import { loadCpuLibrary, openCpuDevice } from "./support/open-device";

const library = await loadCpuLibrary();
let device: Device;
let buffers: Buffers;

beforeAll(() => {
  device = openCpuDevice(library, { debugChecks: true });
  buffers = new Buffers(device);
});

afterAll(() => {
  buffers.release();
  device.close();
});

type Values<N extends OpName> = FieldValues<(typeof opSchemas)[N]>;

/** Launches valid values with some changed and returns the error. */
function refusalOf<N extends OpName>(name: N, valid: Values<N>, changed: Values<N>): string {
  try {
    device.op(name, { ...valid, ...changed }).launch();
  } catch (error) {
    return (error as Error).message;
  }
  return "accepted";
}

const memory = () => buffers.put(new Float32Array(4096).fill(3));

describe("a linear layer", () => {
  const valid = () => ({
    x: memory(),
    weight: memory(),
    out: memory(),
    xStride: 8,
    outStride: 4,
    rows: 2,
    inColumns: 8,
    outColumns: 4,
  });

  test("is accepted as it stands", () => {
    expect(refusalOf("linear", valid(), {})).toBe("accepted");
  });

  test("needs its operands, positive shapes and strides that hold a row", () => {
    expect(refusalOf("linear", valid(), { x: 0 })).toBe("linear: x is absent");
    expect(refusalOf("linear", valid(), { rows: -1 })).toBe("linear: rows is -1, at least 0 is needed");
    expect(refusalOf("linear", valid(), { inColumns: 0 })).toContain("linear: inColumns");
    expect(refusalOf("linear", valid(), { outStride: 3 })).toBe(
      "linear: outStride is 3, at least 4 is needed",
    );
    expect(refusalOf("linear", valid(), { residual: 64, residualStride: 1 })).toContain("residualStride");
  });

  test("computes in float32 only and stores float32 and bfloat16", () => {
    expect(refusalOf("linear", valid(), { dtype: 1 })).toContain("float32 only");
    expect(refusalOf("linear", valid(), { weightDtype: 2 })).toContain("weightDtype");
  });

  test("writes nothing when it is refused", () => {
    const values = valid();
    refusalOf("linear", values, { bias: 0, outColumns: 5 });
    expect(buffers.floats(values.out, 8, "float32")).toEqual(new Float32Array(8).fill(3));
  });
});

describe("attention", () => {
  const valid = () => ({
    q: memory(),
    kCache: memory(),
    vCache: memory(),
    pageTable: buffers.put(Int32Array.of(1, 2)),
    tableRows: buffers.put(Int32Array.of(0)),
    seqLens: buffers.put(Int32Array.of(6)),
    out: memory(),
    scratch: buffers.allocate(1 << 20),
    qStride: 16,
    outStride: 16,
    kPageStrideBytes: 4 * 8 * 4,
    vPageStrideBytes: 4 * 8 * 4,
    tableWidth: 2,
    pageSize: 4,
    numSeqs: 1,
    tokensPerRow: 1,
    maxQueryTokens: 1,
    maxSeqLen: 8,
    numQHeads: 2,
    numKvHeads: 1,
    headDim: 8,
    vHeadDim: 8,
    windowLeft: -1,
    scale: 1,
  });

  test("is accepted as it stands", () => {
    expect(refusalOf("attention", valid(), {})).toBe("accepted");
  });

  test("needs whole groups, pages that hold their rows, and lengths within the bounds", () => {
    expect(refusalOf("attention", valid(), { numKvHeads: 2, numQHeads: 3 })).toContain(
      "multiple of numKvHeads",
    );
    expect(refusalOf("attention", valid(), { kPageStrideBytes: 64 })).toContain("kPageStrideBytes");
    const longer = { seqLens: buffers.put(Int32Array.of(9)) };
    expect(refusalOf("attention", valid(), longer)).toContain("seqLens is 9, at most 8");
    expect(refusalOf("attention", valid(), { ...longer, maxSeqLen: 16 })).toContain(
      "seqLens is 9, at most 8",
    );
    const twoQueries = { queryStarts: buffers.put(Int32Array.of(0, 2)) };
    expect(refusalOf("attention", valid(), twoQueries)).toContain("tokens of one sequence is 2, at most 1");
  });

  test("with checks on finds a hole under a query", () => {
    const holes = { pageTable: buffers.put(Int32Array.of(1, 0)) };
    expect(refusalOf("attention", valid(), holes)).toContain("pageTable has a hole");
  });
});

describe("with checks on", () => {
  test("qkv may not write page 0", () => {
    const valid = {
      qkv: memory(),
      qOut: memory(),
      locations: buffers.put(Int32Array.of(4, -1)),
      kCache: memory(),
      vCache: memory(),
      qkvStride: 12,
      qOutStride: 4,
      kPageStrideBytes: 64,
      vPageStrideBytes: 64,
      rows: 2,
      numQHeads: 1,
      numKvHeads: 1,
      headDim: 4,
      vHeadDim: 4,
      pageSize: 4,
    };
    expect(refusalOf("qkv", valid, {})).toBe("accepted");
    const low = buffers.put(Int32Array.of(4, 3));
    expect(refusalOf("qkv", valid, { locations: low })).toContain("locations names a row of page 0");
    expect(refusalOf("qkv", valid, { headDim: 2000 })).toContain("headDim is 2000, at most 1024");
  });

  test("ids must lie in their tables", () => {
    const ids = buffers.put(Int32Array.of(0, 5));
    const embedding = { table: memory(), ids, out: memory(), rows: 2, columns: 4, vocab: 5, scale: 1 };
    expect(refusalOf("embedding", embedding, {})).toContain("embedding: ids[1] is 5, outside");
    const tokens = { ids: buffers.put(Int32Array.of(1, -4)), lastTokens: memory(), rows: 2, numSlots: 3 };
    expect(refusalOf("resolveTokens", tokens, {})).toContain("ids[1] is -4");
    const counts = { counts: memory(), ids, vocab: 5, numIds: 2 };
    expect(refusalOf("countTokens", counts, {})).toContain("ids[1] is 5");
    expect(
      refusalOf(
        "scatter",
        { table: memory(), indices: buffers.put(Int32Array.of(-1)), values: ids, count: 1 },
        {},
      ),
    ).toContain("indices[0] is -1");
  });
});

describe("an unknown enumerator", () => {
  test("is refused by name", () => {
    const glu = { gateUp: memory(), out: memory(), gateUpStride: 8, outStride: 4, rows: 1, columns: 4 };
    expect(refusalOf("glu", glu, { activation: 7 })).toBe("glu: activation is unknown");
    const route = { logits: memory(), ids: memory(), weights: memory(), rows: 1, numExperts: 4, topK: 2 };
    expect(refusalOf("moeRoute", route, { routing: 3 })).toBe("moe_route: routing is unknown");
    expect(refusalOf("moeRoute", route, { topK: 5 })).toContain("topK is 5, at most 4");
  });
});
