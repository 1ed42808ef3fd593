/** Percentiles and their print. */
import { describe, expect, test } from "bun:test";
import { formatFigures, mean, percentile, summarise } from "../../../src/cli/bench/statistics";

describe("a percentile", () => {
  test("is a value that was measured: the nearest rank", () => {
    const values = [50, 15, 20, 40, 35];
    expect([0.05, 0.3, 0.4, 0.5, 1].map((share) => percentile(values, share))).toEqual([15, 20, 20, 35, 50]);
    expect(percentile([7], 0.99)).toBe(7);
    expect(percentile([], 0.5)).toBeNaN();
    expect(values[0]).toBe(50);
  });
});

describe("a summary", () => {
  test("names mean, median and upper percentiles with their unit", () => {
    const hundred = Array.from({ length: 100 }, (_, i) => i + 1);
    expect(summarise("step", hundred)).toEqual({
      stepMeanMs: 50.5,
      stepMedianMs: 50,
      stepP90Ms: 90,
      stepP99Ms: 99,
    });
    expect(mean([1, 2])).toBe(1.5);
  });
});

describe("figures", () => {
  const figures = { requests: 12, seconds: 1.23456, rate: 123.456, model: "m", missing: Number.NaN };

  test("are a table with as many digits as make sense", () => {
    expect(formatFigures(figures, false)).toBe(
      ["requests  12", "seconds   1.235", "rate      123.5", "model     m", "missing   -", ""].join("\n"),
    );
  });

  test("are JSON in full when that is asked for, with null for what is missing", () => {
    expect(JSON.parse(formatFigures(figures, true))).toEqual({ ...figures, missing: null });
  });
});
