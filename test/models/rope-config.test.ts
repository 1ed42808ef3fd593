/**
 * Rotary settings in every spelling: equal meanings give equal
 * frequencies to the bit, contradictions and typos are refused.
 */
import { describe, expect, test } from "bun:test";
import { inverseFrequencies } from "../../src/layers/rope";
import { ConfigReader, type JsonObject } from "../../src/models/config-reader";
import { maxPositionsOf, readRopeConfig } from "../../src/models/rope-config";
import { expectError } from "../support/expect-error";

const maxPositions = 2048;

function read(config: JsonObject, headDim = 64) {
  const reader = new ConfigReader(config, "config.json");
  const rope = readRopeConfig(reader, headDim, maxPositions);
  return { rope, remarks: reader.remarks, unread: reader.unread() };
}

const refused = (config: JsonObject, ...texts: string[]) =>
  expectError(() => read(config), "unsupported_config", "config.json", ...texts);

const original = { original_max_position_embeddings: 512 };
const theta = { rope_theta: 10_000 };
const nested = { rope_type: "yarn", factor: 4, ...original, ...theta };

describe("one yarn setting in all its spellings", () => {
  const spellings: Readonly<Record<string, JsonObject>> = {
    "rope_scaling, type": { ...theta, rope_scaling: { type: "yarn", factor: 4, ...original } },
    "rope_scaling, rope_type": { ...theta, rope_scaling: { rope_type: "yarn", factor: 4, ...original } },
    rope_parameters: { rope_parameters: nested },
    "rope_parameters, theta outside": {
      ...theta,
      rope_parameters: { rope_type: "yarn", factor: 4, ...original },
    },
    "both sections": {
      ...theta,
      rope_parameters: nested,
      rope_scaling: { type: "yarn", factor: 4, ...original },
    },
    "one section an attention type": {
      rope_parameters: { full_attention: nested, sliding_attention: { ...nested } },
    },
    "a section for sliding attention alone": { rope_parameters: { sliding_attention: nested } },
    "factor from the positions": { rope_parameters: { ...nested, factor: undefined } },
    "theta by default": { rope_scaling: { type: "yarn", factor: 4, ...original }, rope_parameters: null },
    "attention factor spelled out": {
      rope_parameters: { ...nested, attention_factor: 0.1 * Math.log(4) + 1 },
    },
    "attention factor's older name": { rope_parameters: { ...nested, attn_factor: 0.1 * Math.log(4) + 1 } },
    "defaults spelled out": {
      rope_parameters: { ...nested, beta_fast: 32, beta_slow: 1, truncate: true, type: "yarn" },
    },
  };
  const [reference] = Object.values(spellings).map((config) => read(config).rope);

  for (const [name, config] of Object.entries(spellings)) {
    test(`${name}: the same to the bit`, () => {
      const { rope, unread } = read(config);
      expect(rope).toEqual(reference as typeof rope);
      expect(inverseFrequencies(rope)).toEqual(inverseFrequencies(reference as typeof rope));
      expect(unread).toEqual([]);
    });
  }

  test("without the original positions takes all positions, and says so", () => {
    const { rope, remarks } = read({ ...theta, rope_scaling: { type: "yarn", factor: 4 } });
    expect(rope.scaling).toMatchObject({ factor: 4, originalMaxPositions: maxPositions });
    expect(remarks).toHaveLength(1);
    expect(remarks[0]).toContain("original_max_position_embeddings is not set: 2048");
  });
});

describe("other schemes", () => {
  test("are none at all without a section, or with the default type", () => {
    for (const config of [
      {},
      { rope_scaling: null },
      { rope_scaling: {} },
      { rope_parameters: { rope_type: "default" } },
    ]) {
      expect(read(config).rope).toEqual({ theta: 10_000, rotaryDim: 64, scaling: { type: "default" } });
    }
  });

  test("are read in full", () => {
    expect(read({ rope_scaling: { type: "linear", factor: 2.5 } }).rope.scaling).toEqual({
      type: "linear",
      factor: 2.5,
    });
    const llama3 = { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4, ...original };
    expect(read({ rope_parameters: llama3 }).rope.scaling).toEqual({
      type: "llama3",
      factor: 8,
      lowFreqFactor: 1,
      highFreqFactor: 4,
      originalMaxPositions: 512,
    });
    const yarn = {
      ...nested,
      beta_fast: 16,
      beta_slow: 2,
      truncate: false,
      mscale: 0.7,
      mscale_all_dim: 1,
    };
    const { scaling } = read({ rope_parameters: yarn }).rope;
    expect(scaling).toMatchObject({ betaFast: 16, betaSlow: 2, truncate: false });
    const expected = (0.1 * 0.7 * Math.log(4) + 1) / (0.1 * Math.log(4) + 1);
    expect(scaling.type === "yarn" && scaling.attentionFactor).toBeCloseTo(expected, 15);
  });

  test("may turn a part of each head", () => {
    expect(read({ partial_rotary_factor: 0.25 }).rope.rotaryDim).toBe(16);
    expect(read({ rope_parameters: { partial_rotary_factor: 0.5 } }).rope.rotaryDim).toBe(32);
  });

  test("leave what they do not know to be reported", () => {
    expect(read({ rope_scaling: { type: "linear", factor: 2, fraktor: 3 } }).unread).toEqual([
      "rope_scaling.fraktor",
    ]);
  });
});

describe("settings that contradict each other are refused", () => {
  const yarn = { type: "yarn", factor: 4, ...original };
  const contradictions: Readonly<Record<string, JsonObject>> = {
    "two factors": { rope_scaling: yarn, rope_parameters: { ...nested, factor: 8 } },
    "two types": { rope_scaling: yarn, rope_parameters: { rope_type: "default", ...theta } },
    "type and rope_type": { rope_scaling: { ...yarn, rope_type: "linear" } },
    "two names of the attention factor": {
      rope_scaling: { ...yarn, attn_factor: 1, attention_factor: 2 },
    },
    "thetas inside and outside": { rope_theta: 500_000, rope_parameters: nested },
    "thetas of two sections": { rope_parameters: nested, rope_scaling: { ...yarn, rope_theta: 20_000 } },
    "attention types that rotate differently": {
      rope_parameters: { full_attention: nested, sliding_attention: { rope_type: "default" } },
    },
  };
  for (const [name, config] of Object.entries(contradictions)) test(name, () => void refused(config));
});

describe("settings that mean nothing are refused", () => {
  test("an unknown type is named", () => {
    for (const type of ["spiral", "dynamic", "longrope", ""]) {
      refused({ rope_scaling: { type, factor: 2 } }, `'${type}'`);
    }
    refused({ rope_scaling: { type: 3 } }, "rope_type");
  });

  test("numbers must be numbers, and above their bounds", () => {
    refused({ rope_scaling: { type: "yarn", factor: "4", ...original } }, "rope_scaling", "factor");
    refused({ rope_scaling: { type: "linear" } }, "factor is missing");
    for (const factor of [0, -1, Number.POSITIVE_INFINITY])
      refused({ rope_scaling: { type: "linear", factor } }, "factor");
    for (const rope_theta of [0, 1, -5, "10000"]) {
      refused({ rope_theta }, "rope_theta");
      refused({ rope_parameters: { rope_theta } }, "rope_theta");
    }
    refused(
      { rope_scaling: { ...nested, rope_theta: undefined, attention_factor: "1" } },
      "attention_factor",
    );
    refused({ rope_scaling: { ...nested, truncate: "false" } }, "truncate");
    refused({ rope_scaling: { ...nested, original_max_position_embeddings: 0 } }, "original_max_position");
  });

  test("a section must be an object", () => {
    for (const section of ["yarn", 4, true, [1]]) refused({ rope_scaling: section }, "must be an object");
  });

  test("a part of a head must be an even number of dimensions", () => {
    for (const partial_rotary_factor of [0, -0.5, 1.5, 0.05]) {
      refused({ partial_rotary_factor }, "partial_rotary_factor");
    }
  });
});

describe("positions that can be served", () => {
  test("are stretched by linear and yarn, not by llama3", () => {
    const positionsWith = (rope_scaling: JsonObject) =>
      maxPositionsOf(read({ rope_scaling }).rope, maxPositions);
    expect(positionsWith({})).toBe(2048);
    expect(positionsWith({ type: "linear", factor: 2.5 })).toBe(5120);
    expect(positionsWith({ type: "yarn", factor: 16, ...original })).toBe(8192);
    expect(positionsWith({ type: "yarn", factor: 2, ...original })).toBe(2048);
    const llama3 = { type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4, ...original };
    expect(positionsWith(llama3)).toBe(2048);
  });
});
