/**
 * Log-probability rows on their way to the host: the best
 * few, the whole vocabulary, the chosen one and its rank.
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { LogprobRows } from "../../src/engine/protocol";
import { concatenateLogprobs, LogprobReader } from "../../src/executor/logprob-reader";
import { openCpuDevice } from "../support/cpu-device";

const device = openCpuDevice();
afterAll(() => device.close());

const vocabSize = 5;

/** Rows of logits whose softmax is plain to see: logarithms of shares. */
const shares = [
  [0.1, 0.4, 0.2, 0.2, 0.1],
  [0.5, 0.1, 0.1, 0.1, 0.2],
  [0.2, 0.2, 0.2, 0.2, 0.2],
];

function readerOf(maxCount: number): LogprobReader {
  const address = device.allocate(4 * vocabSize * shares.length, "logits");
  device.upload(
    address,
    Float32Array.from(shares.flat(), (share) => Math.log(share) + 3),
  );
  const logits = { address, columns: vocabSize, stride: vocabSize, dtype: "float32" } as const;
  const reader = new LogprobReader(device, logits, shares.length, maxCount);
  reader.compute(shares.length);
  return reader;
}

const probabilities = (values: Float32Array) =>
  [...values].map((value) => Number(Math.exp(value).toFixed(6)));

describe("reading", () => {
  test("gives the best of each row in order, equal ones by id", () => {
    const rows = readerOf(3).read({ firstRow: 0, numRows: 3, begin: 7, count: 2 }, Int32Array.of(1, 4, 3));
    expect(rows).toMatchObject({ begin: 7, numRows: 3, count: 2 });
    expect([...rows.ids]).toEqual([1, 2, 0, 4, 0, 1]);
    expect(probabilities(rows.values)).toEqual([0.4, 0.2, 0.5, 0.2, 0.2, 0.2]);
    expect(probabilities(rows.chosenValues)).toEqual([0.4, 0.2, 0.2]);
    expect([...rows.chosenRanks]).toEqual([1, 2, 1]);
  });

  test("gives the chosen one alone", () => {
    const rows = readerOf(3).read({ firstRow: 1, numRows: 1, begin: 0, count: 0 }, Int32Array.of(2));
    expect([rows.count, rows.ids.length, rows.values.length]).toEqual([0, 0, 0]);
    expect(probabilities(rows.chosenValues)).toEqual([0.1]);
    expect([...rows.chosenRanks]).toEqual([3]);
  });

  test("gives the whole vocabulary in id order", () => {
    const rows = readerOf(3).read({ firstRow: 1, numRows: 2, begin: 0, count: -1 }, Int32Array.of(0, 0));
    expect([rows.count, rows.ids.length]).toEqual([vocabSize, 0]);
    expect(probabilities(rows.values)).toEqual(shares.slice(1).flat());
  });

  test("gives more than the device selects all the same, and no more than there are", () => {
    const four = readerOf(3).read({ firstRow: 0, numRows: 2, begin: 0, count: 4 }, Int32Array.of(0, 0));
    expect(four.count).toBe(4);
    expect([...four.ids]).toEqual([1, 2, 3, 0, 0, 4, 1, 2]);
    expect(probabilities(four.values)).toEqual([0.4, 0.2, 0.2, 0.1, 0.5, 0.2, 0.1, 0.1]);
    const all = readerOf(3).read({ firstRow: 2, numRows: 1, begin: 0, count: 9 }, Int32Array.of(0));
    expect([all.count, [...all.ids]]).toEqual([vocabSize, [0, 1, 2, 3, 4]]);
  });
});

describe("joining", () => {
  const part = (begin: number, values: number[]): LogprobRows => ({
    begin,
    numRows: values.length,
    count: 1,
    ids: Int32Array.from(values),
    values: Float32Array.from(values),
    chosenValues: Float32Array.from(values, (value) => -value),
    chosenRanks: Int32Array.from(values, () => 1),
  });

  test("puts slices of consecutive positions one after another", () => {
    expect(concatenateLogprobs([part(4, [1, 2]), part(6, [3])])).toEqual(part(4, [1, 2, 3]));
  });

  test("of one is that one, of none is none", () => {
    const only = part(4, [1]);
    expect(concatenateLogprobs([only])).toBe(only);
    expect(concatenateLogprobs([])).toBeUndefined();
  });
});
