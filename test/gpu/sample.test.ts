/**
 * The sampler on the card: the CPU library's tokens, over every parameter and over distributions that
 * strain the selection.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Device } from "../../ffi/device";
import { Random } from "../kernels/support/random";
import { hasCard, openCpu, openCuda, testSeed } from "./support/devices";
import { keptTokens } from "./support/kept-tokens";
import { type SamplingBatch, sampleBatch, samplingBatch } from "./support/sampling";

const plain = { temperature: 1, topP: 1, repetitionPenalty: 1 };

/** One row, its parameters the plain ones but for `values`. */
function oneRow(logits: Float32Array, values: object, position = 3): SamplingBatch {
  const batch = samplingBatch(new Random(1), 1, logits.length);
  return {
    ...batch,
    logits,
    positions: Int32Array.of(position),
    params: [{ ...plain, ...values }],
    mask: undefined,
  };
}

describe.skipIf(!hasCard())("sampling on the card", () => {
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

  for (const vocab of [7, 100, 2049, 32_000, 151_936]) {
    test(`gives the CPU's tokens and counts over a vocabulary of ${vocab}`, () => {
      const batch = samplingBatch(new Random(testSeed + vocab), vocab > 10_000 ? 24 : 200, vocab);
      expect(sampleBatch(cuda, batch)).toEqual(sampleBatch(cpu, batch));
      const unmasked = { ...batch, mask: undefined };
      expect(sampleBatch(cuda, unmasked)).toEqual(sampleBatch(cpu, unmasked));
    });
  }

  test("gives a row the same token alone and in a batch", () => {
    const vocab = 5000;
    const batch = samplingBatch(new Random(testSeed), 16, vocab);
    const together = sampleBatch(cuda, batch).tokens;
    batch.slots.forEach((slot, row) => {
      const words = Math.ceil(vocab / 32);
      const alone = {
        ...batch,
        logits: batch.logits.slice(row * vocab, (row + 1) * vocab),
        slots: Int32Array.of(slot),
        positions: batch.positions.slice(row, row + 1),
        mask: batch.mask?.slice(row * words, (row + 1) * words),
      };
      expect(sampleBatch(cuda, alone).tokens[0]).toBe(together[row] as number);
    });
  });

  test("breaks ties towards the lower id, whether greedy, by top-k or by top-p", () => {
    const flat = () => new Float32Array(4000).fill(1.5);
    expect(sampleBatch(cuda, oneRow(flat(), { temperature: 0 })).tokens[0]).toBe(0);
    for (let position = 0; position < 20; position++) {
      const byCount = sampleBatch(cuda, oneRow(flat(), { topK: 3 }, position)).tokens[0] as number;
      expect(byCount).toBeLessThan(3);
      const byMass = sampleBatch(cuda, oneRow(flat(), { topP: 0.0009 }, position)).tokens[0] as number;
      expect(byMass).toBeLessThan(4);
    }
  });

  /** Logits that leave more tokens to choose among than the drawing block can hold. */
  const wide: readonly [string, (random: Random, vocab: number) => Float32Array][] = [
    ["nearly flat", (random, vocab) => random.normals(vocab, 0.2)],
    ["normal", (random, vocab) => random.normals(vocab, 1)],
    ["all equal", (_, vocab) => new Float32Array(vocab).fill(-2)],
    ["of few values", (random, vocab) => random.normals(vocab, 1).map((value) => Math.round(value * 4) / 4)],
    [
      "far below the largest",
      (random, vocab) => random.normals(vocab, 2).map((value, i) => (i === 9 ? 60 : value)),
    ],
    [
      "two likely ones above a faint rest",
      (random, vocab) =>
        random.normals(vocab, 2.5).map((value, i) => (i === 9 ? 30 : i === 5000 ? 29.3 : value - 2)),
    ],
    [
      "finite for a few",
      (random, vocab) =>
        random.normals(vocab, 0.3).map((value, i) => (i % 4 === 0 ? value : Number.NEGATIVE_INFINITY)),
    ],
  ];
  for (const [name, logitsOf] of wide) {
    test(`narrows rows of very many likely tokens as the CPU does: ${name}`, () => {
      const random = new Random(testSeed + name.length);
      for (const values of [
        ...[0.02, 0.5, 0.95, 0.99996, 0.999999].map((topP) => ({ topP })),
        ...[1, 40, 9_000, 30_000, 59_999].map((topK) => ({ topK })),
        { topK: 20_000, topP: 0.9 },
        { topK: 64, topP: 0.5 },
        { topP: 0.9, minP: 0.3 },
        { topP: 0.95, temperature: 30 },
      ]) {
        const logits = logitsOf(random, 60_000);
        const kept = keptTokens(logits, values);
        for (let position = 0; position < 4; position++) {
          const row = () => oneRow(logits.slice(), values, position);
          const places = [cuda, cpu].map((device) =>
            kept.indexOf(sampleBatch(device, row()).tokens[0] as number),
          );
          const [ours, theirs] = places as [number, number];
          // Of so many tokens a rounding error of the sum may draw the next.
          expect([values, ours >= 0, Math.abs(ours - theirs) <= 1]).toEqual([values, true, true]);
        }
      }
    });
  }

  test("answers -1 for a row with a NaN and for a row without a finite value, and skips padding", () => {
    const withNan = new Float32Array(100);
    withNan[57] = Number.NaN;
    expect(sampleBatch(cuda, oneRow(withNan, {})).tokens[0]).toBe(-1);
    const empty = new Float32Array(100).fill(Number.NEGATIVE_INFINITY);
    expect(sampleBatch(cuda, oneRow(empty, { temperature: 0 })).tokens[0]).toBe(-1);
    const padding = { ...oneRow(new Float32Array(100), {}), slots: Int32Array.of(-1) };
    expect(sampleBatch(cuda, padding).tokens[0]).toBe(-7);
  });

  test("draws tokens as often as their probabilities say", () => {
    const probabilities = [0.5, 0.25, 0.15, 0.1];
    const rows = 4000;
    const batch = samplingBatch(new Random(testSeed), rows, 4);
    const drawn = sampleBatch(cuda, {
      ...batch,
      logits: Float32Array.from({ length: rows * 4 }, (_, i) => Math.log(probabilities[i % 4] as number)),
      params: batch.params.map(({ seedLow = 0, seedHigh = 0 }) => ({ ...plain, seedLow, seedHigh })),
      mask: undefined,
    }).tokens;
    probabilities.forEach((probability, token) => {
      const share = drawn.filter((id) => id === token).length / rows;
      expect(Math.abs(share - probability)).toBeLessThan(0.035);
    });
  });
});
