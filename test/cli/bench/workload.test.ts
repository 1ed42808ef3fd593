/** Benchmarks' work: the same from the same flags, within the model's limits, spread as asked. */
import { describe, expect, test } from "bun:test";
import { mean } from "../../../src/cli/bench/statistics";
import { makeWorkload, seededRandom } from "../../../src/cli/bench/workload";
import { parseCommand } from "../../../src/cli/parse-flags";

const vocabSize = 1000;

function workload(args: readonly string[], maxModelLen = 100_000) {
  return makeWorkload(parseCommand("bench", args, {}).flags, vocabSize, maxModelLen);
}

const sized = (inputLen: number, outputLen: number, numPrompts: number) => [
  ...["--input-len", `${inputLen}`, "--output-len", `${outputLen}`, "--num-prompts", `${numPrompts}`],
];

describe("a workload", () => {
  test("is as long and as many as it is told, of tokens that exist", () => {
    const { requests, numCut } = workload(sized(30, 7, 20));
    expect(numCut).toBe(0);
    expect(requests).toHaveLength(20);
    for (const { tokens, maxTokens } of requests) {
      expect([tokens.length, maxTokens]).toEqual([30, 7]);
      expect(tokens.every((token) => token >= 0 && token < vocabSize)).toBe(true);
    }
    expect(new Set(requests.map(({ tokens }) => tokens.join())).size).toBe(20);
  });

  test("is the same from the same seed and another from another", () => {
    const flags = [...sized(30, 7, 5), "--lengths", "sharegpt"];
    expect(workload(flags)).toEqual(workload(flags));
    expect(workload([...flags, "--workload-seed", "9"])).not.toEqual(workload(flags));
  });

  test("begins with the shared prefix, and never with that alone", () => {
    const { requests } = workload([...sized(10, 7, 4), "--shared-prefix-len", "16"]);
    const [first] = requests;
    for (const { tokens } of requests) {
      expect(tokens.length).toBe(17);
      expect(tokens.subarray(0, 16)).toEqual(first?.tokens.subarray(0, 16) as Int32Array);
    }
    expect(new Set(requests.map(({ tokens }) => tokens[16])).size).toBeGreaterThan(1);
  });

  test("fits the context, prompt and answer together", () => {
    for (const [inputLen, outputLen] of [
      [90, 20],
      [10, 500],
      [500, 500],
    ] as const) {
      const args = [...sized(inputLen, outputLen, 10), "--shared-prefix-len", "80", "--lengths", "uniform"];
      for (const { tokens, maxTokens } of workload(args, 64).requests) {
        expect(tokens.length).toBeGreaterThan(0);
        expect(maxTokens).toBeGreaterThan(0);
        expect(tokens.length + maxTokens).toBeLessThanOrEqual(64);
      }
    }
  });

  test("says how many of its requests the context cut, in the prompt or in the answer", () => {
    expect(workload(sized(60, 4, 10), 64).numCut).toBe(0);
    expect(workload(sized(60, 5, 10), 64).numCut).toBe(10);
    expect(workload(sized(1, 64, 10), 64).numCut).toBe(10);
    const spread = [...sized(100, 100, 200), "--lengths", "uniform"];
    const { requests, numCut } = workload(spread, 200);
    const numFull = requests.filter(({ tokens, maxTokens }) => tokens.length + maxTokens === 200).length;
    expect(numCut).toBeGreaterThan(50);
    // A request may fit the context to the token without having been cut.
    expect(numFull).toBeGreaterThanOrEqual(numCut);
    expect(numFull).toBeLessThan(requests.length);
  });

  test("spreads its lengths around the mean that was asked for", () => {
    for (const [kind, low, high] of [
      ["uniform", 50, 150],
      ["sharegpt", 1, 800],
    ] as const) {
      const lengths = workload([...sized(100, 100, 2000), "--lengths", kind]).requests.map(
        ({ tokens }) => tokens.length,
      );
      expect(Math.min(...lengths)).toBeGreaterThanOrEqual(low);
      expect(Math.max(...lengths)).toBeLessThanOrEqual(high);
      expect(mean(lengths)).toBeGreaterThan(90);
      expect(mean(lengths)).toBeLessThan(110);
    }
  });
});

describe("the random numbers", () => {
  test("fill the unit interval evenly for every seed, 0 too", () => {
    for (const seed of [0, 1, 2 ** 31]) {
      const random = seededRandom(seed);
      const values = Array.from({ length: 5000 }, random);
      expect(values.every((value) => value >= 0 && value < 1)).toBe(true);
      expect(Math.abs(mean(values) - 0.5)).toBeLessThan(0.02);
    }
  });
});
