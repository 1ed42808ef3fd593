/**
 * What sampling promises beyond its cases: the random numbers,
 * the borders of the filters, the distribution, broken rows.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Buffers } from "./support/buffers";
import { loadCpuLibrary, openCpuDevice } from "./support/open-device";
import { philox, uniformOf } from "./support/philox";
import { packSamplingParams, type SamplingParams } from "./support/sampling-params";

const device = openCpuDevice(await loadCpuLibrary(), { numThreads: 2 });
afterAll(() => device.close());

const seed = { seedLow: 0xdecafbad, seedHigh: 0x12345678 };

/** Samples `rows` equal rows with the same parameters at positions 0, 1, 2 ... */
function sampleRows(logits: Float32Array, params: SamplingParams, rows: number, draw = 0): Int32Array {
  const buffers = new Buffers(device);
  const vocab = logits.length;
  const all = new Float32Array(rows * vocab);
  for (let r = 0; r < rows; r++) all.set(logits, r * vocab);
  const out = buffers.put(new Int32Array(rows));
  const op = device.op("sample", {
    logits: buffers.put(all),
    slots: buffers.put(new Int32Array(rows)),
    positions: buffers.put(Int32Array.from({ length: rows }, (_, r) => r)),
    params: buffers.put(packSamplingParams([{ ...seed, ...params }])),
    out,
    logitsStride: vocab,
    rows,
    vocab,
    numSlots: 1,
    draw,
  });
  op.set("scratch", buffers.allocate(device.scratchBytes("sample", op.block)));
  op.launch();
  const tokens = buffers.int32s(out, rows);
  buffers.release();
  return tokens;
}

const sampleOne = (logits: readonly number[], params: SamplingParams) =>
  sampleRows(Float32Array.from(logits), params, 1)[0] as number;

/** Every token that turned up in many draws. */
const supportOf = (logits: readonly number[], params: SamplingParams) =>
  [...new Set(sampleRows(Float32Array.from(logits), params, 400))].sort((a, b) => a - b);

describe("the random number", () => {
  test("of the tests is Philox4x32-10 as published", () => {
    const hex = (words: number[]) => words.map((word) => word.toString(16).padStart(8, "0")).join(" ");
    expect(hex(philox([0, 0, 0, 0], [0, 0]))).toBe("6627e8d5 e169c58d bc57ac4c 9b00dbd8");
    const ones = 0xffff_ffff;
    expect(hex(philox([ones, ones, ones, ones], [ones, ones]))).toBe("408f276d 41c83b0e a20bc7c6 6d5451fd");
  });

  test("picks from equal logits exactly where it falls", () => {
    const vocab = 1 << 16;
    const tokens = sampleRows(new Float32Array(vocab).fill(1.5), { choice: 2 }, 64, 5);
    const expected = Array.from(tokens, (_, position) =>
      Math.floor(uniformOf([seed.seedLow, seed.seedHigh], position, 2, 5) * vocab),
    );
    expect(Array.from(tokens)).toEqual(expected);
  });

  test("differs by seed, choice and draw", () => {
    const logits = new Float32Array(4096);
    const base = sampleRows(logits, {}, 8);
    expect(sampleRows(logits, { choice: 1 }, 8)).not.toEqual(base);
    expect(sampleRows(logits, {}, 8, 1)).not.toEqual(base);
    expect(sampleRows(logits, { seedLow: 1 }, 8)).not.toEqual(base);
    expect(sampleRows(logits, { seedHigh: 1 }, 8)).not.toEqual(base);
    expect(sampleRows(logits, {}, 8)).toEqual(base);
  });
});

describe("the filters", () => {
  const equal = [3, 3, 3, 3, -2];

  test("top-p keeps the fewest tokens that reach it, lower ids first among equals", () => {
    const four = equal.slice(0, 4);
    expect(supportOf(four, { topP: 0.5 })).toEqual([0, 1]);
    expect(supportOf(four, { topP: 0.50001 })).toEqual([0, 1, 2]);
    expect(supportOf(four, { topP: 0 })).toEqual([0]);
    expect(supportOf(four, { topP: 1 })).toEqual([0, 1, 2, 3]);
  });

  test("top-p behind top-k counts only what top-k kept", () => {
    expect(supportOf(equal, { topK: 2, topP: 0.5 })).toEqual([0]);
    expect(supportOf(equal, { topK: 2, topP: 0.51 })).toEqual([0, 1]);
    expect(supportOf(equal, { topK: 4, topP: 0.75 })).toEqual([0, 1, 2]);
  });

  test("top-k keeps exactly k, lower ids first among equals", () => {
    expect(supportOf(equal, { topK: 3 })).toEqual([0, 1, 2]);
    expect(supportOf(equal, { topK: 1 })).toEqual([0]);
  });

  test("min-p keeps what has that share of the best, the best always", () => {
    const logits = [0, Math.log(0.5), Math.log(0.25), Math.log(0.125)];
    expect(supportOf(logits, { minP: 0.2 })).toEqual([0, 1, 2]);
    expect(supportOf(logits, { minP: 0.4 })).toEqual([0, 1]);
    expect(supportOf(logits, { minP: 1 })).toEqual([0]);
  });

  test("the temperature is applied before min-p", () => {
    expect(supportOf([0, Math.log(0.25)], { minP: 0.4, temperature: 2 })).toEqual([0, 1]);
  });

  test("a nucleus of a wide vocabulary holds the tokens of a full sort", () => {
    const vocab = 3000;
    const logits = Float32Array.from({ length: vocab }, (_, i) => Math.sin(i * 12.9898) * 9);
    const order = Array.from(logits.keys()).sort((a, b) => (logits[b] as number) - (logits[a] as number));
    const weights = order.map((id) => Math.exp((logits[id] as number) - 9));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    let before = 0;
    const kept = new Set(
      order.filter((_, i) => {
        const stays = before < 0.4 * total;
        before += weights[i] as number;
        return stays;
      }),
    );
    const tokens = sampleRows(logits, { topP: 0.4 }, 1500);
    expect(Array.from(tokens).filter((token) => !kept.has(token))).toEqual([]);
  });
});

test("frequencies follow the softmax", () => {
  const logits = [0, 1, 2, -1, 0.5];
  const draws = 20_000;
  const counts = new Array<number>(logits.length).fill(0);
  for (const token of sampleRows(Float32Array.from(logits), { temperature: 1.5 }, draws)) {
    counts[token] = (counts[token] as number) + 1;
  }
  const weights = logits.map((logit) => Math.exp(logit / 1.5));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const chiSquare = weights.reduce((sum, weight, id) => {
    const expected = (weight / total) * draws;
    return sum + ((counts[id] as number) - expected) ** 2 / expected;
  }, 0);
  expect(chiSquare).toBeLessThan(18.5); // four degrees of freedom, one in a thousand
});

describe("without a choice", () => {
  test("temperature 0 takes the largest, the lower id among equals", () => {
    expect(sampleOne([1, 5, 5, 2], { temperature: 0 })).toBe(1);
    expect(sampleOne([-0, 0, -1], { temperature: 0 })).toBe(0);
  });

  test("a NaN or nothing finite yields -1", () => {
    expect(sampleOne([1, Number.NaN, 2], { temperature: 0 })).toBe(-1);
    expect(sampleOne([1, Number.NaN, 2], {})).toBe(-1);
    expect(sampleOne([-Infinity, -Infinity], {})).toBe(-1);
    expect(sampleOne([Infinity, -Infinity], {})).toBe(-1);
  });

  test("an infinite logit wins over finite ones", () => {
    expect(sampleOne([1, Infinity, 2], { temperature: 0 })).toBe(1);
    expect(sampleOne([1, Infinity, 2], {})).toBe(1);
  });
});
