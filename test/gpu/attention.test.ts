/**
 * Paged attention on the card against the CPU library, over fixed corners and over random shapes from
 * a fresh seed.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Device, Dtype } from "../../ffi/device";
import { Random } from "../kernels/support/random";
import {
  type AttentionShape,
  attentionOperands,
  prepareAttention,
  runAttention,
} from "./support/attention-shape";
import { largestDifference, relativeError } from "./support/closeness";
import { hasCard, openCpu, openCuda, testSeed } from "./support/devices";

setDefaultTimeout(60_000); // the oracle is slow on long contexts

const wide = { numQHeads: 16, numKvHeads: 4, headDim: 256, vHeadDim: 256, pageSize: 64 };
const qwen = { numQHeads: 32, numKvHeads: 8, headDim: 128, vHeadDim: 128, pageSize: 64 };

const gptOss = {
  numQHeads: 64,
  numKvHeads: 8,
  headDim: 64,
  vHeadDim: 64,
  pageSize: 64,
  sinks: true,
  windowLeft: 127,
};

/** Norms of the error: bfloat16 rounds the output once and the weights of the keys once. */
const bounds: Readonly<Record<string, number>> = { bfloat16: 8e-3, float32: 2e-6 };

/** Prefill whose blocks of keys are no power of two, so that they begin and end inside pages. */
function wideCorners(headDim: number, vHeadDim: number): Record<string, AttentionShape> {
  const heads = { ...wide, headDim, vHeadDim };
  const name = `in prefill with keys of ${headDim} and values of ${vHeadDim}`;
  return {
    [`a chunk behind a prefix ${name}`]: { ...heads, seqLens: [2000, 1, 333, 0], queries: [400, 1, 333, 9] },
    [`splits of a long prefix ${name}`]: { ...heads, seqLens: [6007, 20], queries: [16, 20] },
    [`a window ${name}`]: { ...heads, seqLens: [900, 700], queries: [900, 300], windowLeft: 100 },
    [`holes and small pages ${name}`]: {
      ...heads,
      pageSize: 16,
      seqLens: [800, 3000],
      queries: [100, 50],
      holes: 0.4,
    },
    [`holes, sinks and pages of 48 tokens ${name}`]: {
      ...heads,
      pageSize: 48,
      seqLens: [1500, 40],
      queries: [200, 40],
      holes: 0.3,
      sinks: true,
    },
    [`a softcap, a window and pages of 128 tokens ${name}`]: {
      ...heads,
      pageSize: 128,
      seqLens: [700, 900],
      queries: [1, 600],
      softcap: 20,
      windowLeft: 333,
    },
  };
}

const corners: Readonly<Record<string, AttentionShape>> = {
  "one token of context": { ...qwen, seqLens: [1], queries: 1 },
  "a long context in one sequence": { ...qwen, seqLens: [9001], queries: 1 },
  "a batch of mixed lengths with padding": {
    ...qwen,
    seqLens: [0, 5, 700, 64, 1025, 0, 65, 3000],
    queries: 1,
  },
  "a bound far above the lengths": { ...qwen, seqLens: [17, 130], queries: 1, maxSeqLen: 40000 },
  "three tokens a row": { ...qwen, seqLens: [3, 900, 66], queries: 3 },
  "a prompt from nothing": { ...qwen, seqLens: [517], queries: [517] },
  "a short extension of a long prefix": { ...qwen, seqLens: [8192, 20], queries: [16, 20] },
  "a chunk behind a prefix": { ...qwen, seqLens: [2000, 1, 333], queries: [400, 1, 333] },
  "a window in decode": { ...qwen, seqLens: [50, 5000], queries: 1, windowLeft: 127 },
  "a window in prefill": { ...qwen, seqLens: [900, 700], queries: [900, 300], windowLeft: 100 },
  "holes behind the window": { ...qwen, seqLens: [3000, 2000], queries: 1, holes: 0.4 },
  "holes in prefill": { ...qwen, seqLens: [800, 900], queries: [100, 200], holes: 0.4, pageSize: 16 },
  "sinks and a window": {
    numQHeads: 16,
    numKvHeads: 2,
    headDim: 64,
    vHeadDim: 64,
    pageSize: 16,
    seqLens: [1500, 40],
    queries: 1,
    windowLeft: 128,
    sinks: true,
  },
  "sinks in prefill": {
    ...qwen,
    headDim: 64,
    vHeadDim: 64,
    seqLens: [300],
    queries: [200],
    sinks: true,
  },
  "gpt-oss's heads, sinks and window in decode": {
    ...gptOss,
    seqLens: [1, 127, 128, 129, 700, 4000],
    queries: 1,
  },
  "gpt-oss's heads, sinks and window in prefill": {
    ...gptOss,
    seqLens: [513, 2000, 300],
    queries: [513, 150, 1],
  },
  "gpt-oss's heads and sinks without a window": {
    ...gptOss,
    windowLeft: -1,
    seqLens: [3000, 900],
    queries: [1, 600],
  },
  "a softcap": { ...qwen, headDim: 256, vHeadDim: 256, seqLens: [700, 900], queries: [1, 600], softcap: 20 },
  "keys wider than values": { ...qwen, headDim: 192, vHeadDim: 128, seqLens: [300, 700], queries: [300, 1] },
  "an odd multiple of eight": { ...qwen, headDim: 72, vHeadDim: 40, seqLens: [70, 333], queries: 1 },
  "as many key heads as query heads": { ...qwen, numQHeads: 8, seqLens: [100, 65], queries: [100, 2] },
  "all heads in one group": { ...qwen, numKvHeads: 1, seqLens: [129, 1000], queries: 1 },
  "values narrower than keys in decode": {
    ...qwen,
    headDim: 192,
    vHeadDim: 128,
    seqLens: [300, 1700],
    queries: 1,
  },
  "wide heads in decode": { ...qwen, headDim: 256, vHeadDim: 256, seqLens: [2000, 37], queries: 1 },
  "more key heads than multiprocessors": {
    ...qwen,
    numQHeads: 160,
    numKvHeads: 160,
    headDim: 64,
    vHeadDim: 64,
    seqLens: [200, 3],
    queries: 1,
  },
  "hundreds of short sequences": {
    numQHeads: 8,
    numKvHeads: 2,
    headDim: 64,
    vHeadDim: 64,
    pageSize: 16,
    seqLens: Array.from({ length: 300 }, (_, seq) => (seq * 37) % 150),
    queries: 1,
  },
  "pages of 128 tokens with holes": {
    ...qwen,
    pageSize: 128,
    seqLens: [1500, 900],
    queries: 1,
    windowLeft: 600,
    holes: 0.3,
  },
  "pages of 128 tokens in prefill": { ...qwen, pageSize: 128, seqLens: [700, 90], queries: [500, 90] },
  "pages of 48 tokens": { ...qwen, pageSize: 48, seqLens: [500, 1000], queries: [300, 1] },
  ...wideCorners(256, 256),
  ...wideCorners(192, 192),
  ...wideCorners(192, 128),
  "values wider than keys in prefill": { ...wide, headDim: 72, seqLens: [500, 90], queries: [200, 90] },
};

function randomShape(random: Random): AttentionShape {
  const numKvHeads = random.pick([1, 2, 4, 8]);
  const group = random.pick([1, 2, 3, 4, 5, 7, 8, 12]);
  const headDim = random.pick([64, 128, 192, 256, random.integer(1, 32) * 8]);
  const numSeqs = random.integer(1, 6);
  const isDecode = random.next() < 0.5;
  const queries = Array.from({ length: numSeqs }, () => random.integer(1, random.pick([4, 40, 300])));
  const tokens = random.integer(1, 4);
  const count = (seq: number) => (isDecode ? tokens : (queries[seq] as number));
  return {
    numQHeads: numKvHeads * group,
    numKvHeads,
    headDim,
    vHeadDim: random.pick([headDim, random.integer(1, 32) * 8]),
    pageSize: random.pick([16, 32, 64, 128]),
    queries: isDecode ? tokens : queries,
    seqLens: Array.from(
      { length: numSeqs },
      (_, seq) => count(seq) + random.integer(0, random.pick([3, 100, 1500])),
    ),
    windowLeft: random.pick([-1, -1, random.integer(0, 300)]),
    softcap: random.pick([0, 0, 30]),
    sinks: random.next() < 0.3,
    holes: random.pick([0, 0, 0.3]),
  };
}

describe.skipIf(!hasCard())("paged attention on the card", () => {
  let cuda: Device;
  let cpu: Device;
  beforeAll(() => {
    cuda = openCuda();
    cpu = openCpu();
  });
  afterAll(() => {
    cuda.close();
    cpu.close();
  });

  function compare(shape: AttentionShape, seed: number, dtype: Dtype, kvDtype: Dtype): void {
    const operands = attentionOperands(shape, seed);
    const expected = runAttention(cpu, shape, operands, "float32", kvDtype);
    const actual = runAttention(cuda, shape, operands, dtype, kvDtype);
    expect(relativeError(actual, expected)).toBeLessThan(bounds[dtype] as number);
    expect(largestDifference(actual, expected)).toBeLessThan(10 * (bounds[dtype] as number));
  }

  for (const [name, shape] of Object.entries(corners)) {
    test(`agrees with the CPU on ${name}`, () => {
      compare(shape, testSeed, "bfloat16", "bfloat16");
      compare(shape, testSeed + 1, "float32", "float32");
    });
  }

  test("gives the same bits every time, however its parts arrive", () => {
    const shape = { ...qwen, seqLens: [4000, 1, 900, 0, 2500, 64], queries: 1 };
    const operands = attentionOperands(shape, testSeed);
    const prepared = prepareAttention(cuda, shape, operands, "bfloat16", "bfloat16");
    prepared.launch();
    const first = prepared.output();
    for (let i = 0; i < 20; i++) {
      prepared.launch();
      expect(prepared.output()).toEqual(first);
    }
    prepared.release();
  });

  test("agrees with the CPU where activations and cache have different types", () => {
    const shape = { ...qwen, seqLens: [40, 300], queries: [40, 1] };
    compare(shape, testSeed, "float32", "bfloat16");
    compare(shape, testSeed, "bfloat16", "float32");
  });

  for (let i = 0; i < 40; i++) {
    const seed = testSeed + 1000 * i;
    const shape = randomShape(new Random(seed));
    test(`agrees with the CPU on random shape ${JSON.stringify({ seed, ...shape })}`, () => {
      compare(shape, seed, "bfloat16", "bfloat16");
      if (i % 4 === 0) compare(shape, seed, "float32", "float32");
    });
  }
});
