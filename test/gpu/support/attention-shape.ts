/**
 * One attention problem: its shape, operands from a seed, and a run on a device that leaves all else
 * untouched and poisoned.
 */
import type { Device, Dtype } from "../../../ffi/device";
import { dtypeBytes, dtypes } from "../../../ffi/device";
import { rounded } from "../../kernels/support/bfloat16";
import { Buffers } from "../../kernels/support/buffers";
import { Random } from "../../kernels/support/random";

export interface AttentionShape {
  /** Tokens in the cache after this step, one a sequence; 0 is a padded row. */
  readonly seqLens: readonly number[];
  /** Queries of each sequence; one number: the same for all, without queryStarts. */
  readonly queries: number | readonly number[];
  readonly numQHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly vHeadDim: number;
  readonly pageSize: number;
  readonly windowLeft?: number;
  readonly softcap?: number;
  readonly sinks?: boolean;
  /** Share of pages below the last that are holes. */
  readonly holes?: number;
  /** Bound on lengths that the launch is told; the true maximum unless given. */
  readonly maxSeqLen?: number;
}

export interface AttentionOperands {
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly pageTable: Int32Array;
  readonly tableRows: Int32Array;
  readonly queryStarts: Int32Array;
  readonly seqLens: Int32Array;
  readonly sinks: Float32Array;
  readonly numPages: number;
  readonly tableWidth: number;
}

export const untouched = 7.5;
const fenceBytes = 4096;

const queriesOf = (shape: AttentionShape, seq: number): number =>
  typeof shape.queries === "number" ? shape.queries : (shape.queries[seq] as number);

export const numRowsOf = (shape: AttentionShape): number =>
  shape.seqLens.reduce((sum, _, seq) => sum + queriesOf(shape, seq), 0);

/** Pages in random order, NaN wherever no token was written, values that both dtypes hold exactly. */
export function attentionOperands(shape: AttentionShape, seed: number): AttentionOperands {
  const random = new Random(seed);
  const { pageSize, seqLens } = shape;
  const tableWidth = Math.max(1, ...seqLens.map((length) => Math.ceil(length / pageSize)));
  const pagesOf = seqLens.map((length) => Math.ceil(length / pageSize));
  const numPages = 1 + pagesOf.reduce((a, b) => a + b, 0);
  const order = new Random(seed + 1).permutation(numPages - 1);
  const pageTable = new Int32Array(seqLens.length * tableWidth).fill(-1);
  const tableRows = new Random(seed + 2).permutation(seqLens.length);
  const k = new Float32Array(numPages * pageSize * shape.numKvHeads * shape.headDim).fill(Number.NaN);
  const v = new Float32Array(numPages * pageSize * shape.numKvHeads * shape.vHeadDim).fill(Number.NaN);
  let nextPage = 0;
  seqLens.forEach((length, seq) => {
    for (let column = 0; column < (pagesOf[seq] as number); column++) {
      const page = 1 + (order[nextPage++] as number);
      const isLast = column === (pagesOf[seq] as number) - 1;
      const isHole = !isLast && random.next() < (shape.holes ?? 0);
      pageTable[(tableRows[seq] as number) * tableWidth + column] = isHole ? 0 : page;
      const rows = Math.min(pageSize, length - column * pageSize);
      fillRows(k, random, page * pageSize, rows, shape.numKvHeads * shape.headDim);
      fillRows(v, random, page * pageSize, rows, shape.numKvHeads * shape.vHeadDim);
    }
  });
  const starts = [0];
  seqLens.forEach((_, seq) => {
    starts.push((starts[seq] as number) + queriesOf(shape, seq));
  });
  return {
    q: rounded(random.normals(numRowsOf(shape) * shape.numQHeads * shape.headDim), "bfloat16"),
    k,
    v,
    pageTable,
    tableRows,
    queryStarts: Int32Array.from(starts),
    seqLens: Int32Array.from(seqLens),
    sinks: random.normals(shape.numQHeads),
    numPages,
    tableWidth,
  };
}

const pool = rounded(new Random(99).normals(2 ** 16 - 1), "bfloat16");

/** Normal values from a pool, begun at a random place: drawing each would take longer than the kernels. */
function fillRows(
  cache: Float32Array,
  random: Random,
  firstRow: number,
  rows: number,
  columns: number,
): void {
  let at = random.integer(0, pool.length - 1);
  for (let i = firstRow * columns; i < (firstRow + rows) * columns; i++) {
    cache[i] = pool[at] as number;
    at = at + 1 === pool.length ? 0 : at + 1;
  }
}

/** Puts the operands on a device and prepares the op; `launch` may be repeated. */
export function prepareAttention(
  device: Device,
  shape: AttentionShape,
  operands: AttentionOperands,
  dtype: Dtype,
  kvDtype: Dtype,
) {
  const buffers = new Buffers(device);
  const { numQHeads, numKvHeads, headDim, vHeadDim, pageSize } = shape;
  const numRows = numRowsOf(shape);
  const isEven = typeof shape.queries === "number";
  const numSeqs = shape.seqLens.length;
  const maxQueryTokens = Math.max(...shape.seqLens.map((_, seq) => queriesOf(shape, seq)));
  const maxSeqLen = shape.maxSeqLen ?? Math.max(1, ...shape.seqLens);
  const outCount = numRows * numQHeads * vHeadDim;
  const out = buffers.putFloats(new Float32Array(outCount).fill(untouched), dtype);
  const addresses = {
    seqLens: buffers.put(operands.seqLens),
    pageTable: buffers.put(operands.pageTable),
    q: buffers.putFloats(operands.q, dtype),
  };
  const op = device.op("attention", {
    ...addresses,
    kCache: buffers.putFloats(operands.k, kvDtype),
    vCache: buffers.putFloats(operands.v, kvDtype),
    tableRows: buffers.put(operands.tableRows),
    queryStarts: isEven ? 0 : buffers.put(operands.queryStarts),
    sinks: shape.sinks ? buffers.put(operands.sinks) : 0,
    out,
    qStride: numQHeads * headDim,
    outStride: numQHeads * vHeadDim,
    kPageStrideBytes: pageSize * numKvHeads * headDim * dtypeBytes[kvDtype],
    vPageStrideBytes: pageSize * numKvHeads * vHeadDim * dtypeBytes[kvDtype],
    tableWidth: operands.tableWidth,
    pageSize,
    numSeqs,
    tokensPerRow: isEven ? (shape.queries as number) : 0,
    maxQueryTokens,
    maxSeqLen,
    numQHeads,
    numKvHeads,
    headDim,
    vHeadDim,
    windowLeft: shape.windowLeft ?? -1,
    dtype: dtypes[dtype],
    kvDtype: dtypes[kvDtype],
    scale: 1 / Math.sqrt(headDim),
    softcap: shape.softcap ?? 0,
  });
  // As an engine does: one scratch for the largest shape, and launches of smaller ones.
  op.set("numSeqs", numSeqs + 3)
    .set("maxQueryTokens", maxQueryTokens + 50)
    .set("maxSeqLen", 2 * maxSeqLen);
  const scratchBytes = device.scratchBytes("attention", op.block);
  op.set("numSeqs", numSeqs).set("maxQueryTokens", maxQueryTokens).set("maxSeqLen", maxSeqLen);
  const scratch = poisoned(buffers, scratchBytes + fenceBytes);
  if (scratchBytes > 0) op.set("scratch", scratch);
  return {
    addresses,
    launch: () => op.launch(),
    output: () => buffers.floats(out, outCount, dtype),
    /** True while nothing was written behind the scratch. */
    isFenceIntact: () => {
      const fence = buffers.get(scratch + scratchBytes, new Uint8Array(fenceBytes));
      return fence.every((byte) => byte === 0xff);
    },
    release: () => buffers.release(),
  };
}

/** Memory full of NaN, whatever it is read as. */
function poisoned(buffers: Buffers, bytes: number): number {
  return buffers.put(new Uint8Array(bytes).fill(0xff));
}

export function runAttention(
  device: Device,
  shape: AttentionShape,
  operands: AttentionOperands,
  dtype: Dtype,
  kvDtype: Dtype,
): Float32Array {
  const prepared = prepareAttention(device, shape, operands, dtype, kvDtype);
  try {
    prepared.launch();
    const output = prepared.output();
    if (!prepared.isFenceIntact()) throw new Error("attention wrote behind its scratch");
    return output;
  } finally {
    prepared.release();
  }
}
