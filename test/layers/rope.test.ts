/**
 * Inverse frequencies of every scaling scheme, against values computed from the published formulas elsewhere.
 */
import { describe, expect, test } from "bun:test";
import { inverseFrequencies, type RopeScaling, yarnAttentionFactor } from "../../src/layers/rope";

/** Frequencies of the named pairs. */
function frequencies(theta: number, rotaryDim: number, scaling: RopeScaling, pairs: readonly number[]) {
  const all = inverseFrequencies({ theta, rotaryDim, scaling });
  expect(all).toHaveLength(rotaryDim / 2);
  return Object.fromEntries(pairs.map((pair) => [pair, all[pair]]));
}

function expectFrequencies(
  theta: number,
  rotaryDim: number,
  scaling: RopeScaling,
  expected: Readonly<Record<number, number>>,
): void {
  expect(frequencies(theta, rotaryDim, scaling, Object.keys(expected).map(Number))).toEqual(expected);
}

const plain = { type: "default" } as const;
const llama3 = {
  type: "llama3",
  factor: 8,
  lowFreqFactor: 1,
  highFreqFactor: 4,
  originalMaxPositions: 8192,
} as const;
const yarn = {
  type: "yarn",
  factor: 4,
  betaFast: 32,
  betaSlow: 1,
  originalMaxPositions: 512,
  truncate: true,
  attentionFactor: 1,
} as const;

describe("inverse frequencies", () => {
  test("fall geometrically without scaling", () => {
    expectFrequencies(10_000, 8, plain, {
      0: 1,
      1: 0.10000000149011612,
      2: 0.009999999776482582,
      3: 0.0010000000474974513,
    });
    expectFrequencies(1_000_000, 128, plain, {
      1: 0.8058421611785889,
      10: 0.11547819525003433,
      63: 1.2409377632138785e-6,
    });
  });

  test("are divided alike by linear scaling", () => {
    expectFrequencies(
      10_000,
      8,
      { type: "linear", factor: 4 },
      {
        0: 0.25,
        1: 0.02500000037252903,
        2: 0.0024999999441206455,
        3: 0.0002500000118743628,
      },
    );
  });

  test("are kept, blended and divided by wavelength in llama3", () => {
    expectFrequencies(500_000, 128, llama3, {
      0: 1,
      20: 0.016560440883040428,
      28: 0.0032114461064338684,
      29: 0.0021665708627551794,
      30: 0.0013718935661017895,
      31: 0.0008567514014430344,
      34: 0.00017850780568551272,
      35: 9.556212171446532e-5,
      40: 3.428102354519069e-5,
      63: 3.068925877869333e-7,
    });
  });

  test("are ramped between pairs 3 and 16 in yarn", () => {
    expectFrequencies(10_000, 64, yarn, {
      0: 1,
      3: 0.4216965138912201,
      4: 0.297983855009079,
      8: 0.07115384936332703,
      15: 0.0041031427681446075,
      16: 0.0024999999441206455,
      31: 3.333803761051968e-5,
    });
  });

  test("are ramped between fractions of pairs when yarn does not truncate", () => {
    expectFrequencies(
      10_000,
      64,
      { ...yarn, truncate: false },
      {
        3: 0.4216965138912201,
        4: 0.30140647292137146,
        8: 0.07039863616228104,
        15: 0.0035736148711293936,
        16: 0.0024999999441206455,
      },
    );
  });

  test("follow yarn's own betas", () => {
    expectFrequencies(
      10_000,
      64,
      { ...yarn, betaFast: 16, betaSlow: 2 },
      {
        5: 0.23713737726211548,
        8: 0.07187499850988388,
        12: 0.010870329104363918,
        31: 3.333803761051968e-5,
      },
    );
  });

  test("stay finite where yarn's ramp has no width", () => {
    const steep = { ...yarn, originalMaxPositions: 16, betaFast: 1e9, betaSlow: 1e9 };
    for (const value of inverseFrequencies({ theta: 10_000, rotaryDim: 4, scaling: steep })) {
      expect(value).toBeGreaterThan(0);
      expect(value).toBeLessThanOrEqual(1);
    }
  });

  test("are float32 numbers", () => {
    for (const scaling of [plain, llama3, yarn]) {
      const values = inverseFrequencies({ theta: 500_000, rotaryDim: 96, scaling });
      expect([...values]).toEqual([...Float32Array.from(values)]);
    }
  });
});

describe("yarn's attention factor", () => {
  test("grows with the logarithm of the factor", () => {
    expect(yarnAttentionFactor(4)).toBeCloseTo(1.138629436111989, 15);
    expect(yarnAttentionFactor(40)).toBeCloseTo(1.3688879454113936, 15);
  });

  test("does nothing to a context that is not stretched", () => {
    expect(yarnAttentionFactor(1)).toBe(1);
    expect(yarnAttentionFactor(0.5)).toBe(1);
  });

  test("is the quotient of both multipliers where both are given", () => {
    expect(yarnAttentionFactor(40, 0.7, 1)).toBeCloseTo(0.9191559952044436, 15);
    expect(yarnAttentionFactor(40, 1, 1)).toBe(1);
    expect(yarnAttentionFactor(40, 1, undefined)).toBe(yarnAttentionFactor(40));
    expect(yarnAttentionFactor(40, 0, 1)).toBe(yarnAttentionFactor(40));
  });
});
