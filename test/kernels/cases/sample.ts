/**
 * Cases of granary_sample: every parameter alone and together,
 * counts, biases, suppression, masks, padding, broken rows.
 */
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import { packSamplingParams, type SamplingParams } from "../support/sampling-params";
import type { KernelCase } from "./kernel-case";
import { sampleReference } from "./sample-reference";

const rows = 100;
const numSlots = 130;
const capacity = 5;
const draw = 3;

interface SampleShape {
  readonly name: string;
  readonly vocab: number;
  readonly params: (random: Random) => SamplingParams;
  readonly masks?: boolean;
}

function operands({ vocab, params, masks }: SampleShape) {
  const random = new Random(vocab);
  const stride = vocab + 3;
  const logits = random.normals(rows * stride, 3).map((x) => Math.round(x * 64) / 64);
  logits.fill(-Infinity, 2 * stride, 2 * stride + vocab); // no finite value
  logits[3 * stride + (vocab >> 1)] = Number.NaN;
  logits.fill(0.5, 4 * stride, 4 * stride + vocab); // ties everywhere
  const slots = random.permutation(numSlots).slice(0, rows);
  slots[6] = -1;
  const maskWords = Math.ceil(vocab / 32);
  const bit31 = () => (random.next() < 0.5 ? 0x80000000 : 0);
  return {
    stride,
    logits,
    slots,
    positions: random.integers(rows, 0, 5000),
    params: Array.from({ length: numSlots }, () => ({
      seedLow: random.integer(0, 0xffff_ffff),
      seedHigh: random.integer(0, 0xffff_ffff),
      choice: random.integer(0, 3),
      ...params(random),
    })),
    counts: Uint32Array.from({ length: numSlots * vocab }, () =>
      random.next() < 0.6 ? 0 : bit31() + random.integer(0, 3),
    ),
    biasIds: random.integers(numSlots * capacity, 0, vocab - 1),
    biasValues: random.normals(numSlots * capacity, 4),
    suppressedIds: random.integers(numSlots * capacity, 0, vocab - 1),
    maskWords,
    mask: masks
      ? Uint32Array.from({ length: rows * maskWords }, () => random.integer(0, 0xffff_ffff) | 1)
      : undefined,
  };
}

type Operands = ReturnType<typeof operands>;

function referenceOutputs({ vocab }: SampleShape, given: Operands) {
  const out = new Int32Array(rows).fill(-7);
  const lastTokens = new Int32Array(numSlots).fill(-9);
  const counts = given.counts.slice();
  given.slots.forEach((slot, r) => {
    if (slot < 0) return;
    const own = (array: Int32Array | Float32Array) => array.slice(slot * capacity, (slot + 1) * capacity);
    const token = sampleReference({
      logits: given.logits.slice(r * given.stride, r * given.stride + vocab),
      params: given.params[slot] as SamplingParams,
      position: given.positions[r] as number,
      draw,
      counts: given.counts.slice(slot * vocab, (slot + 1) * vocab),
      biasIds: own(given.biasIds) as Int32Array,
      biasValues: own(given.biasValues) as Float32Array,
      suppressedIds: own(given.suppressedIds) as Int32Array,
      ...(given.mask && {
        allowed: (id: number) => {
          const word = given.mask?.[r * given.maskWords + (id >> 5)] as number;
          return ((word >>> (id & 31)) & 1) === 1;
        },
      }),
    });
    out[r] = token;
    lastTokens[slot] = token;
    if (given.params[slot]?.usesCounts && token >= 0) {
      counts[slot * vocab + token] = (counts[slot * vocab + token] as number) + 1;
    }
  });
  return { out, lastTokens, counts };
}

function sampleCase(shape: SampleShape): KernelCase {
  const { vocab } = shape;
  return {
    name: `sample ${shape.name} of ${vocab}`,
    rows,
    prepare(device) {
      const given = operands(shape);
      const buffers = new Buffers(device);
      const [logits, slots, positions] = [given.logits, given.slots, given.positions].map((array) =>
        buffers.put(array),
      ) as [number, number, number];
      const mask = given.mask ? buffers.put(given.mask) : 0;
      const counts = buffers.put(given.counts);
      const out = buffers.put(new Int32Array(rows).fill(-7));
      const lastTokens = buffers.put(new Int32Array(numSlots).fill(-9));
      const op = device.op("sample", {
        params: buffers.put(packSamplingParams(given.params)),
        counts,
        biasIds: buffers.put(given.biasIds),
        biasValues: buffers.put(given.biasValues),
        suppressedIds: buffers.put(given.suppressedIds),
        lastTokens,
        logitsStride: given.stride,
        rows,
        vocab,
        numSlots,
        biasCapacity: capacity,
        suppressedCapacity: capacity,
        draw,
      });
      op.set("scratch", buffers.allocate(device.scratchBytes("sample", op.block)));
      return {
        launch(begin, end) {
          op.set("logits", logits + begin * given.stride * 4).set("slots", slots + begin * 4);
          op.set("positions", positions + begin * 4).set("out", out + begin * 4);
          op.set("mask", mask && mask + begin * given.maskWords * 4).set("rows", end - begin);
          op.launch();
        },
        outputs: () => ({
          out: buffers.int32s(out, rows),
          lastTokens: buffers.int32s(lastTokens, numSlots),
          counts: buffers.get(counts, new Uint32Array(numSlots * vocab)),
        }),
        release: () => buffers.release(),
      };
    },
    reference: () => referenceOutputs(shape, operands(shape)),
    tolerance: () => ({ absolute: 0, relative: 0 }),
  };
}

const penalties = { usesCounts: 1, repetitionPenalty: 1.3, presencePenalty: 0.4, frequencyPenalty: 0.7 };

export const sampleCases: readonly KernelCase[] = [
  sampleCase({ name: "the largest", vocab: 501, params: () => ({ temperature: 0 }) }),
  sampleCase({
    name: "the largest under penalties",
    vocab: 97,
    params: () => ({ temperature: 0, ...penalties }),
  }),
  sampleCase({
    name: "everything",
    vocab: 1003,
    params: (random) => ({ temperature: random.pick([0.5, 1, 2]) }),
  }),
  sampleCase({ name: "from top k", vocab: 700, params: (random) => ({ topK: random.integer(1, 900) }) }),
  sampleCase({
    name: "from top p",
    vocab: 640,
    params: (random) => ({ topP: random.pick([0, 0.3, 0.9, 0.999]) }),
  }),
  sampleCase({ name: "from min p", vocab: 300, params: (random) => ({ minP: random.pick([0.02, 0.3, 1]) }) }),
  sampleCase({
    name: "with biases, suppression and a mask",
    vocab: 130,
    masks: true,
    params: (random) => ({ numBiases: random.integer(0, 5), numSuppressed: 4, suppressBelow: 2500 }),
  }),
  sampleCase({
    name: "with all at once",
    vocab: 333,
    masks: true,
    params: (random) => ({
      ...penalties,
      temperature: random.pick([0, 0.7, 1.5]),
      topK: random.pick([0, 5, 50]),
      topP: random.pick([0.5, 0.95, 1]),
      minP: random.pick([0, 0.01]),
      numBiases: 3,
      numSuppressed: 2,
      suppressBelow: 3000,
    }),
  }),
];
