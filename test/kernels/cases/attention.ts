/**
 * Cases of granary_attention over several sequences at once: group sizes, windows, softcap, sinks, holes,
 * padding, odd widths, both KV dtypes. Rows are the queries of all sequences; a piece of them is a batch of
 * shorter chunks, down to one token each.
 */
import { type Device, dtypeBytes } from "../../../ffi/device";
import { rounded } from "../support/bfloat16";
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import { attentionReference } from "./attention-reference";
import { type AttentionOperands, type AttentionShape, attentionScale, numRows } from "./attention-shape";
import type { ActivationDtype, KernelCase } from "./kernel-case";
import { blankMatrix, dtypeNumber, randomMatrix } from "./operands";

const pageGap = 5;

/** Pages in random order, page 0 left alone; with holes, a third of the pages that no query stands on. */
function pageTable(shape: AttentionShape, random: Random, tableWidth: number): Int32Array {
  const { sequences, pageSize } = shape;
  const order = random.permutation(sequences.length * tableWidth);
  const pages = Int32Array.from(order, (page) => page + 1);
  sequences.forEach(([cached, queries], s) => {
    for (let p = 0; p < tableWidth; p++) {
      const isBehind = p * pageSize >= cached + queries;
      const isHole = shape.holes === true && (p + 1) * pageSize <= cached && random.next() < 0.35;
      if (isBehind || isHole) pages[s * tableWidth + p] = 0;
    }
  });
  return pages;
}

export function attentionOperands(shape: AttentionShape, dtype: ActivationDtype): AttentionOperands {
  const { sequences, numQHeads, numKvHeads, headDim, vHeadDim = headDim, pageSize, kvDtype } = shape;
  const random = new Random(headDim * 17 + numQHeads + pageSize);
  const longest = Math.max(...sequences.map(([cached, queries]) => cached + queries));
  const tableWidth = Math.ceil(longest / pageSize) + 1;
  const numPages = sequences.length * tableWidth + 1;
  const kPageElements = pageSize * numKvHeads * headDim + pageGap;
  const vPageElements = pageSize * numKvHeads * vHeadDim + pageGap;
  const cache = (elements: number) => {
    const values = rounded(random.normals(numPages * elements), kvDtype);
    values.fill(Number.NaN, 0, elements); // whoever reads page 0 shows it
    return values;
  };
  const [k, v] = [cache(kPageElements), cache(vPageElements)];
  const pages = pageTable(shape, random, tableWidth);
  sequences.forEach(([cached, queries], s) => {
    for (const position of shape.poison ? [0, cached + queries - 1] : []) {
      const page = pages[s * tableWidth + Math.floor(position / pageSize)] as number;
      const [poisoned, elements, dim] =
        shape.poison === "keys" ? [k, kPageElements, headDim] : [v, vPageElements, vHeadDim];
      const row = page * elements + (position % pageSize) * numKvHeads * dim;
      poisoned.fill(Number.NaN, row, row + numKvHeads * dim);
    }
  });
  return {
    q: randomMatrix(random, numRows(shape), numQHeads * headDim, { gap: 3, dtype }),
    k,
    v,
    sinks: random.normals(numQHeads, 2),
    pages,
    tableWidth,
    kPageElements,
    vPageElements,
  };
}

/** The sequences of rows [begin, end) as launch arguments: starts, lengths, table rows. */
function sequencesOf(shape: AttentionShape, begin: number, end: number) {
  const starts = [0];
  const lengths: number[] = [];
  const tableRows: number[] = [];
  let first = 0;
  shape.sequences.forEach(([cached, queries], s) => {
    const from = Math.max(begin, first);
    const to = Math.min(end, first + queries);
    if (from < to) {
      starts.push((starts.at(-1) as number) + to - from);
      lengths.push(cached + to - first);
      tableRows.push(s);
    }
    first += queries;
  });
  return { starts, lengths, tableRows };
}

/** One launch over part of the rows. A padded sequence of length 0 rides along at the end. */
function launchRows(
  device: Device,
  shape: AttentionShape,
  base: Record<string, number>,
  begin: number,
  end: number,
) {
  const { starts, lengths, tableRows } = sequencesOf(shape, begin, end);
  const buffers = new Buffers(device);
  const values = {
    ...base,
    queryStarts: buffers.put(Int32Array.from([...starts, starts.at(-1) as number])),
    seqLens: buffers.put(Int32Array.from([...lengths, 0])),
    tableRows: buffers.put(Int32Array.from([...tableRows, 0])),
    numSeqs: lengths.length + 1,
    maxQueryTokens: end - begin,
    maxSeqLen: Math.max(...lengths),
  };
  const op = device.op("attention", values);
  op.set("scratch", buffers.allocate(device.scratchBytes("attention", op.block)));
  op.launch();
  device.synchronize();
  buffers.release();
}

export function attentionCase(shape: AttentionShape): KernelCase {
  const { numQHeads, numKvHeads, headDim, vHeadDim = headDim, kvDtype } = shape;
  const rows = numRows(shape);
  return {
    name: `attention ${JSON.stringify(shape)}`,
    rows,
    prepare(device, dtype) {
      const given = attentionOperands(shape, dtype);
      const buffers = new Buffers(device);
      const blank = blankMatrix(rows, numQHeads * vHeadDim, 2);
      const q = buffers.putFloats(given.q.values, dtype);
      const out = buffers.putFloats(blank.values, dtype);
      const base = {
        kCache: buffers.putFloats(given.k, kvDtype),
        vCache: buffers.putFloats(given.v, kvDtype),
        pageTable: buffers.put(given.pages),
        sinks: shape.sinks ? buffers.put(given.sinks) : 0,
        qStride: given.q.stride,
        outStride: blank.stride,
        kPageStrideBytes: given.kPageElements * dtypeBytes[kvDtype],
        vPageStrideBytes: given.vPageElements * dtypeBytes[kvDtype],
        tableWidth: given.tableWidth,
        pageSize: shape.pageSize,
        numQHeads,
        numKvHeads,
        headDim,
        vHeadDim,
        windowLeft: shape.window ?? -1,
        dtype: dtypeNumber(dtype),
        kvDtype: dtypeNumber(kvDtype),
        scale: attentionScale(shape),
        softcap: shape.softcap ?? 0,
      };
      return {
        launch(begin, end) {
          const qRow = q + begin * given.q.stride * dtypeBytes[dtype];
          const outRow = out + begin * blank.stride * dtypeBytes[dtype];
          launchRows(device, shape, { ...base, q: qRow, out: outRow }, begin, end);
        },
        outputs: () => ({ out: buffers.floats(out, rows * blank.stride, dtype) }),
        release: () => buffers.release(),
      };
    },
    reference: (dtype) => ({ out: attentionReference(shape, attentionOperands(shape, dtype)) }),
    tolerance: (dtype) =>
      dtype === "bfloat16" ? { absolute: 1e-2, relative: 1e-2 } : { absolute: 3e-6, relative: 3e-6 },
  };
}

const common = { numQHeads: 4, numKvHeads: 2, headDim: 32, pageSize: 16, kvDtype: "float32" } as const;

export const attentionCases: readonly KernelCase[] = [
  attentionCase({ ...common, sequences: [[0, 1]] }),
  attentionCase({ ...common, sequences: [[0, 100]], numQHeads: 8, numKvHeads: 1 }),
  attentionCase({
    ...common,
    sequences: [
      [33, 40],
      [0, 7],
      [129, 1],
      [5, 52],
    ],
    kvDtype: "bfloat16",
    headDim: 48,
  }),
  attentionCase({
    ...common,
    sequences: [
      [90, 60],
      [3, 40],
    ],
    window: 21,
    numQHeads: 6,
    pageSize: 8,
  }),
  attentionCase({
    ...common,
    sequences: [
      [70, 50],
      [20, 50],
    ],
    holes: true,
    sinks: true,
    numQHeads: 2,
    headDim: 21,
  }),
  attentionCase({ ...common, sequences: [[40, 100]], softcap: 3, vHeadDim: 19, numQHeads: 14, pageSize: 4 }),
  attentionCase({
    ...common,
    sequences: [
      [61, 16],
      [0, 84],
    ],
    window: 0,
    kvDtype: "bfloat16",
    sinks: true,
  }),
  attentionCase({ ...common, sequences: [[300, 100]], window: 64, softcap: 20, numQHeads: 10, headDim: 64 }),
  attentionCase({
    ...common,
    sequences: [
      [0, 58],
      [30, 24],
    ],
    window: 10,
    poison: "values",
  }),
  attentionCase({
    ...common,
    sequences: [
      [3, 40],
      [47, 1],
    ],
    window: 9,
    poison: "keys",
    kvDtype: "bfloat16",
  }),
];

/** Every query group size from 1 to 8, and heads that do not fill a tile. */
export const groupCases: readonly KernelCase[] = [1, 2, 3, 4, 5, 6, 7, 8].map((group) =>
  attentionCase({
    ...common,
    sequences: [
      [37, 9],
      [0, 20],
    ],
    numQHeads: 2 * group,
    headDim: 16 + group,
  }),
);
