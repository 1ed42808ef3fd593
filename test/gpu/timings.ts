/**
 * Prints what the kernels take on this card: decode and prefill attention, products, experts, sampling. Not a
 * test: nothing can fail.
 */
import { type Device, dtypes } from "../../ffi/device";
import { Buffers } from "../kernels/support/buffers";
import { Random } from "../kernels/support/random";
import { openCuda } from "./support/devices";
import { sampleBatch, samplingBatch } from "./support/sampling";
import { medianNs } from "./support/timing";

const heads = { numQHeads: 32, numKvHeads: 8, headDim: 128, vHeadDim: 128, pageSize: 64 };
const tokenBytes = heads.numKvHeads * heads.headDim * 2;
/** Buffers rotate beyond what the L2 cache holds. */
const rotationBytes = 256 * 2 ** 20;

interface Problem {
  readonly seqLens: readonly number[];
  readonly newTokens: number;
}

/** Synthetic K and V for every rotation, one page table over all of them in random order. */
function prepareProblem(device: Device, buffers: Buffers, { seqLens, newTokens }: Problem) {
  const pagesOf = seqLens.map((length) => Math.ceil(length / heads.pageSize));
  const tableWidth = Math.max(...pagesOf);
  const numPages = pagesOf.reduce((a, b) => a + b, 0);
  const pageBytes = heads.pageSize * tokenBytes;
  const rotations = Math.max(1, Math.ceil(rotationBytes / (2 * numPages * pageBytes)));
  const cache = (seed: number) => {
    const rows = (1 + numPages * rotations) * heads.pageSize;
    const columns = tokenBytes / 2;
    const prepared = buffers.allocate(rows * columns * 2);
    const whole = { prepared, sourceStride: columns, rows, columns, totalRows: rows };
    device.synthesize({ ...whole, dtype: dtypes.bfloat16, scale: 1, a: seed, b: 7 });
    return prepared;
  };
  const order = new Random(1).permutation(numPages * rotations);
  const tables = Array.from({ length: rotations }, (_, rotation) => {
    const table = new Int32Array(seqLens.length * tableWidth);
    let next = rotation * numPages;
    pagesOf.forEach((pages, seq) => {
      for (let i = 0; i < pages; i++) table[seq * tableWidth + i] = 1 + (order[next++] as number);
    });
    return buffers.put(table);
  });
  const rows = seqLens.length * newTokens;
  const op = device.op("attention", {
    q: buffers.putFloats(new Random(3).normals(rows * 4096), "bfloat16"),
    kCache: cache(1),
    vCache: cache(2),
    tableRows: buffers.put(Int32Array.from(seqLens.keys())),
    seqLens: buffers.put(Int32Array.from(seqLens)),
    out: buffers.allocate(rows * 4096 * 2),
    qStride: 4096,
    outStride: 4096,
    kPageStrideBytes: pageBytes,
    vPageStrideBytes: pageBytes,
    tableWidth,
    numSeqs: seqLens.length,
    tokensPerRow: newTokens,
    maxQueryTokens: newTokens,
    maxSeqLen: Math.max(...seqLens),
    ...heads,
    windowLeft: -1,
    dtype: dtypes.bfloat16,
    kvDtype: dtypes.bfloat16,
    scale: 128 ** -0.5,
  });
  const scratchBytes = device.scratchBytes("attention", op.block);
  if (scratchBytes > 0) op.set("scratch", buffers.allocate(scratchBytes));
  const launch = (index: number) => op.set("pageTable", tables[index % rotations] as number).launch();
  return { launch, rotations };
}

function timeAttention(device: Device, problem: Problem): number {
  const buffers = new Buffers(device);
  const { launch, rotations } = prepareProblem(device, buffers, problem);
  const ns = medianNs(device, Math.max(rotations, 4), launch);
  buffers.release();
  return ns;
}

function timeDecode(device: Device, label: string, seqLens: readonly number[]): void {
  const ns = timeAttention(device, { seqLens, newTokens: 1 });
  const bytes = 2 * tokenBytes * seqLens.reduce((a, b) => a + b, 0);
  console.log(
    `decode ${label.padEnd(10)} ${(ns / 1000).toFixed(1).padStart(9)} us`,
    `${(bytes / ns / 1000).toFixed(2)} TB/s`,
  );
}

function timePrefill(device: Device, cached: number, newTokens: number): void {
  const ns = timeAttention(device, { seqLens: [cached + newTokens], newTokens });
  const work = 4 * heads.numQHeads * heads.headDim * (newTokens * cached + newTokens ** 2 / 2);
  console.log(
    `prefill ${cached}+${newTokens} ${(ns / 1000).toFixed(0)} us ${(work / ns / 1000).toFixed(0)} TFLOP/s`,
  );
}

function timeLinear(device: Device, rows: number, outColumns: number, inColumns: number): void {
  const buffers = new Buffers(device);
  const weightBytes = outColumns * inColumns * 2;
  const rotations = Math.max(1, Math.ceil(rotationBytes / weightBytes));
  const total = outColumns * rotations;
  const weight = buffers.allocate(weightBytes * rotations);
  const whole = {
    prepared: weight,
    sourceStride: inColumns,
    rows: total,
    columns: inColumns,
    totalRows: total,
  };
  device.synthesize({ ...whole, dtype: dtypes.bfloat16, scale: 1, a: 1, b: 2 });
  const op = device.op("linear", {
    x: buffers.putFloats(new Random(5).normals(rows * inColumns), "bfloat16"),
    out: buffers.allocate(rows * outColumns * 2),
    xStride: inColumns,
    outStride: outColumns,
    rows,
    inColumns,
    outColumns,
    dtype: dtypes.bfloat16,
    weightDtype: dtypes.bfloat16,
    outDtype: dtypes.bfloat16,
  });
  const ns = medianNs(device, Math.max(rotations, 4), (index) =>
    op.set("weight", weight + (index % rotations) * weightBytes).launch(),
  );
  const work = 2 * rows * outColumns * inColumns;
  const rates = `${(weightBytes / ns / 1000).toFixed(2)} TB/s ${(work / ns / 1000).toFixed(0)} TFLOP/s`;
  console.log(`linear ${outColumns}x${inColumns} M=${rows} ${(ns / 1000).toFixed(1)} us ${rates}`);
  buffers.release();
}

/** Experts of a 30B-A3B shape; every launch takes other ones. */
function timeExperts(device: Device, rows: number): void {
  const [numExperts, topK, hidden, inner] = [128, 8, 2048, 768];
  const buffers = new Buffers(device);
  const weight = (count: number, columns: number, seed: number) => {
    const prepared = buffers.allocate(count * columns * 2);
    const whole = { prepared, sourceStride: columns, rows: count, columns, totalRows: count };
    device.synthesize({ ...whole, dtype: dtypes.bfloat16, scale: 0.02, a: seed, b: 1 });
    return prepared;
  };
  const random = new Random(7);
  const ids = Int32Array.from(
    Array.from({ length: rows }, () => [...random.permutation(numExperts).slice(0, topK)]).flat(),
  );
  const op = device.op("moeExperts", {
    x: buffers.putFloats(random.normals(rows * hidden), "bfloat16"),
    gateUp: weight(numExperts * 2 * inner, hidden, 1),
    down: weight(numExperts * hidden, inner, 2),
    weights: buffers.put(new Float32Array(rows * topK).fill(1 / topK)),
    out: buffers.allocate(rows * hidden * 2),
    xStride: hidden,
    outStride: hidden,
    rows,
    hidden,
    inner,
    numExperts,
    topK,
    dtype: dtypes.bfloat16,
    weightDtype: dtypes.bfloat16,
  });
  op.set("scratch", buffers.allocate(device.scratchBytes("moe", op.block)));
  const rotations = 8;
  const shifted = Array.from({ length: rotations }, (_, i) =>
    buffers.put(ids.map((id) => (id + (i * numExperts) / rotations) % numExperts)),
  );
  const ns = medianNs(device, rotations, (index) => op.set("ids", shifted[index] as number).launch());
  const bytes = new Set(ids).size * 3 * hidden * inner * 2;
  const work = rows * topK * 6 * hidden * inner;
  const rates = `${(bytes / ns / 1000).toFixed(2)} TB/s ${(work / ns / 1000).toFixed(0)} TFLOP/s`;
  console.log(`experts ${rows} rows ${(ns / 1000).toFixed(1)} us ${rates}`);
  buffers.release();
}

function timeSampling(device: Device, rows: number, values: object): void {
  const batch = samplingBatch(new Random(1), rows, 151_936);
  const params = batch.params.map(() => ({ topP: 1, repetitionPenalty: 1, temperature: 1, ...values }));
  const plain = { ...batch, params, mask: undefined };
  sampleBatch(device, plain);
  const ns = sampleBatch(device, plain, (launch) => medianNs(device, 1, launch)).launchNs;
  console.log(`sample ${rows} rows ${JSON.stringify(values)} ${((ns ?? 0) / 1000).toFixed(1)} us`);
}

const device = openCuda();
const { name, cublasLtVersion } = device.info();
console.log(`${name}, cuBLASLt ${cublasLtVersion}`);
timeDecode(device, "1x4096", [4096]);
timeDecode(device, "1x32768", [32768]);
timeDecode(device, "8x4096", Array(8).fill(4096));
timeDecode(device, "64x1024", Array(64).fill(1024));
timeDecode(device, "64x4096", Array(64).fill(4096));
timeDecode(device, "64x8192", Array(64).fill(8192));
const mixed = Array.from(new Random(9).permutation(64), (i) => 100 + Math.round((29_900 * i) / 63));
timeDecode(device, "64 mixed", mixed);
for (const tokens of [2048, 4096, 8192, 16384]) timePrefill(device, 0, tokens);
timePrefill(device, 16384, 2048);
timePrefill(device, 32768, 16);
for (const [outColumns, inColumns] of [
  [6144, 4096],
  [4096, 4096],
  [24576, 4096],
  [4096, 12288],
  [151936, 4096],
] as const) {
  for (const rows of [1, 64]) timeLinear(device, rows, outColumns, inColumns);
}
timeLinear(device, 4096, 12288, 4096);
for (const rows of [1, 8, 16, 64, 256, 512, 2048, 8192]) timeExperts(device, rows);
for (const rows of [1, 64]) {
  timeSampling(device, rows, { temperature: 0 });
  timeSampling(device, rows, {});
  timeSampling(device, rows, { topK: 40, topP: 0.95 });
  timeSampling(device, rows, { topP: 0.5 });
  timeSampling(device, rows, { topP: 0.95 });
}
device.close();

const alone = openCuda({}, false);
console.log("without cuBLASLt");
for (const rows of [128, 512, 4096]) {
  for (const outColumns of [4096, 24576]) timeLinear(alone, rows, outColumns, 4096);
}
alone.close();
