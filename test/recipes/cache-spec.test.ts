/** What a cache group may declare: three legal kinds, positive geometry, known dtypes. */
import { describe, expect, test } from "bun:test";
import {
  blockGranularityOf,
  type CacheDtype,
  type CacheGroupSpec,
  checkFieldSpec,
  checkGroupSpec,
  dtypeWidthBytes,
  payloadBytes,
} from "../../src/recipes/cache-spec";
import { byteField, specWith } from "../support/cache-fields";
import { expectError } from "../support/expect-error";

const rows = (rowsPerPage: number, entryStrideTokens: number) =>
  ({ kind: "rows", rowsPerPage, entryStrideTokens }) as const;
const checkpoint = (checkpointGranularity: number) =>
  ({ kind: "checkpoint", checkpointGranularity }) as const;

function expectRefused(overrides: Partial<CacheGroupSpec>, reason: string): void {
  expectError(() => checkGroupSpec(specWith(overrides)), "invalid_cache_group", reason);
}

describe("a group's declaration", () => {
  test("is a full history, a sliding history or a state", () => {
    checkGroupSpec(specWith({}));
    checkGroupSpec(specWith({ retention: "slidingWindow", slidingWindowTokens: 128 }));
    checkGroupSpec(
      specWith({ retention: "slidingWindow", slidingWindowTokens: 1, replayable: true, shardCount: 4 }),
    );
    checkGroupSpec(specWith({ family: "state", shape: checkpoint(16) }));
  });

  test("covers rows times stride tokens a block, or the distance of its checkpoints", () => {
    expect(blockGranularityOf(specWith({ shape: rows(64, 1) }))).toBe(64);
    expect(blockGranularityOf(specWith({ shape: rows(2, 128) }))).toBe(256);
    expect(blockGranularityOf(specWith({ family: "state", shape: checkpoint(16) }))).toBe(16);
  });

  test("is named", () => expectRefused({ groupId: "" }, "id is empty"));

  test("has positive whole geometry, each number by itself", () => {
    for (const shape of [rows(0, 1), rows(1, 0), rows(-8, -8), rows(0.5, 2), rows(Number.NaN, 1)]) {
      expectRefused({ shape }, "geometry");
    }
    for (const granularity of [0, -1, 1.5]) {
      expectRefused({ family: "state", shape: checkpoint(granularity) }, "geometry");
    }
    for (const shardCount of [0, -1, 0.5]) expectRefused({ shardCount }, "shard count");
  });

  test("gives a state checkpoints and a history rows", () => {
    expectRefused({ family: "state", shape: rows(16, 1) }, "not rows");
    expectRefused({ shape: checkpoint(16) }, "not checkpoints");
  });

  test("never lets a state slide", () => {
    const shape = checkpoint(16);
    expectRefused(
      { family: "state", shape, retention: "slidingWindow", slidingWindowTokens: 4 },
      "never slides",
    );
  });

  test("has a window exactly when it slides", () => {
    expectRefused({ retention: "slidingWindow" }, "window");
    expectRefused({ slidingWindowTokens: 128 }, "window");
    for (const slidingWindowTokens of [0, -1, 2.5]) {
      expectRefused({ retention: "slidingWindow", slidingWindowTokens }, "window");
    }
  });

  test("is replayable only when it slides", () => {
    expectRefused({ replayable: true }, "replayed");
  });
});

describe("a field", () => {
  test("has as many bytes as its elements", () => {
    const widths: Readonly<Record<CacheDtype, number>> = {
      uint8: 1,
      int8: 1,
      float8_e4m3fn: 1,
      float8_e5m2: 1,
      float8_e8m0fnu: 1,
      bfloat16: 2,
      float16: 2,
      int32: 4,
      float32: 4,
      int64: 8,
      float64: 8,
    };
    for (const [dtype, width] of Object.entries(widths) as [CacheDtype, number][]) {
      expect(dtypeWidthBytes(dtype)).toBe(width);
      expect(payloadBytes({ fieldId: "f", planeId: "p", shape: [8, 16], dtype })).toBe(128 * width);
    }
  });

  test("of a foreign dtype or with a non-positive extent is refused by name", () => {
    const faulty = [
      byteField("layer.0.k", "p", 8, { dtype: "float4" as CacheDtype }),
      byteField("layer.0.k", "p", 8, { dtype: "toString" as CacheDtype }),
      byteField("layer.0.k", "p", 0),
      byteField("layer.0.k", "p", 8, { shape: [4, -1] }),
      byteField("layer.0.k", "p", 8, { shape: [1.5] }),
      byteField("layer.0.k", "p", 8, { pageStrideAlignmentBytes: 0 }),
    ];
    for (const field of faulty)
      expectError(() => checkFieldSpec(field), "invalid_cache_fields", "'layer.0.k'");
    checkFieldSpec(byteField("layer.0.k", "p", 8));
  });
});
