/** What attention promises beyond its cases: padding, fixed tokens a row, scratch, idle threads. */
import { describe, expect, test } from "bun:test";
import type { Device } from "../../ffi/device";
import { Buffers } from "./support/buffers";
import { type CpuOptions, loadCpuLibrary, openCpuDevice } from "./support/open-device";
import { Random } from "./support/random";

const library = await loadCpuLibrary();
const [numQHeads, numKvHeads, headDim, pageSize, tableWidth] = [8, 2, 16, 4, 12];
const width = numQHeads * headDim;

/** Lengths of the sequences; each has `tokensPerRow` queries at its end, one of length 0 is padding. */
interface Batch {
  readonly lengths: readonly number[];
  readonly tokensPerRow: number;
  readonly withStarts: boolean;
  /** Bounds that the scratch is sized by. */
  readonly scratchFor?: { readonly numSeqs: number; readonly maxSeqLen: number };
}

const withDevice = <T>(options: CpuOptions, use: (device: Device) => T): T => {
  const device = openCpuDevice(library, options);
  try {
    return use(device);
  } finally {
    device.close();
  }
};

function attend(device: Device, batch: Batch): Float32Array {
  const buffers = new Buffers(device);
  const { lengths, tokensPerRow } = batch;
  const random = new Random(4);
  const rows = lengths.length * tokensPerRow;
  const cache = () =>
    buffers.put(random.normals((lengths.length * tableWidth + 1) * pageSize * numKvHeads * headDim));
  const out = buffers.put(new Float32Array(rows * width).fill(7.5));
  const op = device.op("attention", {
    q: buffers.put(random.normals(rows * width)),
    kCache: cache(),
    vCache: cache(),
    pageTable: buffers.put(Int32Array.from({ length: lengths.length * tableWidth }, (_, i) => i + 1)),
    tableRows: buffers.put(Int32Array.from(lengths.keys())),
    queryStarts: batch.withStarts
      ? buffers.put(Int32Array.from({ length: lengths.length + 1 }, (_, s) => s * tokensPerRow))
      : 0,
    seqLens: buffers.put(Int32Array.from(lengths)),
    out,
    qStride: width,
    outStride: width,
    kPageStrideBytes: pageSize * numKvHeads * headDim * 4,
    vPageStrideBytes: pageSize * numKvHeads * headDim * 4,
    tableWidth,
    pageSize,
    numSeqs: batch.scratchFor?.numSeqs ?? lengths.length,
    tokensPerRow: batch.withStarts ? 0 : tokensPerRow,
    maxQueryTokens: tokensPerRow,
    maxSeqLen: batch.scratchFor?.maxSeqLen ?? Math.max(...lengths),
    numQHeads,
    numKvHeads,
    headDim,
    vHeadDim: headDim,
    windowLeft: -1,
    scale: 0.25,
  });
  op.set("scratch", buffers.allocate(device.scratchBytes("attention", op.block)));
  op.set("numSeqs", lengths.length)
    .set("maxSeqLen", Math.max(...lengths))
    .launch();
  const result = buffers.floats(out, rows * width, "float32");
  buffers.release();
  return result;
}

describe("a batch with fixed tokens a row", () => {
  const batch = { lengths: [17, 0, 5, 48], tokensPerRow: 3 } as const;

  test("gives the bits of the same batch with starts", () => {
    withDevice({ numThreads: 2 }, (device) => {
      const fixed = attend(device, { ...batch, withStarts: false });
      expect(fixed).toEqual(attend(device, { ...batch, withStarts: true }));
    });
  });

  test("leaves the rows of a padding sequence untouched", () => {
    withDevice({}, (device) => {
      const out = attend(device, { ...batch, withStarts: false });
      expect(out.subarray(3 * width, 6 * width)).toEqual(new Float32Array(3 * width).fill(7.5));
      expect(out.subarray(0, 3 * width).every((x) => Math.abs(x) < 4)).toBe(true);
    });
  });
});

test("scratch for larger bounds serves a smaller batch", () => {
  withDevice({ numThreads: 2 }, (device) => {
    const batch: Batch = { lengths: [9, 20], tokensPerRow: 1, withStarts: false };
    const sized = attend(device, { ...batch, scratchFor: { numSeqs: 40, maxSeqLen: 48 } });
    expect(sized).toEqual(attend(device, batch));
  });
});

test("one query on many threads is cut by heads and keeps its bits", () => {
  const batch: Batch = { lengths: [48], tokensPerRow: 1, withStarts: false };
  const alone = withDevice({}, (device) => attend(device, batch));
  for (const numThreads of [2, 5, 11]) {
    expect(withDevice({ numThreads }, (device) => attend(device, batch))).toEqual(alone);
  }
});
