/** Layouts of published architectures against figures worked out by hand. */
import { describe, expect, test } from "bun:test";
import { bind } from "../../src/recipes/bind";
import { type CacheGroupDeclaration, payloadBytes } from "../../src/recipes/cache-spec";
import { type CacheLayout, pack } from "../../src/recipes/pack";
import { plainCacheGroups, plainCacheLayout } from "../../src/recipes/plain";
import { expectError } from "../support/expect-error";
import {
  compressedGroups,
  deltaLatentGroups,
  deltaNetGroups,
  latentGroups,
  powerOfTwoPins,
} from "../support/family-layouts";

function packingOf(layout: CacheLayout): Record<string, number> {
  return Object.fromEntries(
    layout.groupPacking.map((group) => [group.groupId, group.cacheBlocksPerLcmBlock]),
  );
}

const planeBytesOf = (layout: CacheLayout) =>
  Object.fromEntries(layout.planes.map((plane) => [plane.planeId, plane.bytesPerLcmBlock]));

/** Waste of a group's block as a fraction of its payload. */
function paddingOf(layout: CacheLayout, groups: readonly CacheGroupDeclaration[], groupId: string): number {
  const group = groups.find(({ spec }) => spec.groupId === groupId);
  const raw = group?.fields.reduce((sum, field) => sum + payloadBytes(field), 0) ?? 0;
  return layout.lcmBlockBytes / (packingOf(layout)[groupId] as number) / raw - 1;
}

describe("grouped queries, every other layer sliding", () => {
  const layout = plainCacheLayout(
    plainCacheGroups({
      layerLabels: ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
      window: 128,
      numKvHeads: 8,
      headDim: 64,
      vHeadDim: 64,
      kvDtype: "bfloat16",
      prefixGranularity: 64,
    }),
    64,
  );

  test("share four planes without waste", () => {
    expect(planeBytesOf(layout)).toEqual({
      "unit.0.k": 65536,
      "unit.0.v": 65536,
      "unit.1.k": 65536,
      "unit.1.v": 65536,
    });
    expect(layout.lcmBlockBytes).toBe(262144);
    const planeOf = (fieldId: string) => layout.fields.find((field) => field.fieldId === fieldId)?.planeId;
    expect(planeOf("layer.0.k")).toBe("unit.0.k");
    expect(planeOf("layer.1.k")).toBe("unit.0.k");
  });

  test("lie plane by plane in the arena", () => {
    const plan = bind(layout, 3);
    expect(plan.arenaBytes).toBe(1048576);
    expect(plan.groups.map(({ pageCount }) => pageCount)).toEqual([4, 4]);
    expect(plan.planes.map(({ arenaOffsetBytes }) => arenaOffsetBytes)).toEqual([0, 262144, 524288, 786432]);
    const key = plan.fields.find(({ fieldId }) => fieldId === "layer.1.k");
    const blocks = [0, 1, 2, 3].map((id) => (key?.arenaOffsetBytes ?? -1) + id * (key?.pageStrideBytes ?? 0));
    expect(blocks).toEqual([0, 65536, 131072, 196608]);
  });
});

describe("latent attention", () => {
  test("needs one plane a layer", () => {
    const layout = pack(latentGroups(3), { prefixGranularity: 64 });
    expect(planeBytesOf(layout)).toEqual({ "slot.0": 73728, "slot.1": 73728, "slot.2": 73728 });
    expect(layout.lcmBlockBytes).toBe(221184);
    expect(bind(layout, 3).arenaBytes).toBe(884736);
  });

  test("puts index keys on planes of their own, which sort first", () => {
    const layout = pack(latentGroups(2, { indexKeys: true }), { prefixGranularity: 64 });
    expect(layout.planes.map(({ planeId }) => planeId)).toEqual([
      "layer.0.index_k",
      "layer.1.index_k",
      "slot.0",
      "slot.1",
    ]);
    expect(planeBytesOf(layout)["layer.0.index_k"]).toBe(8448);
    expect(layout.lcmBlockBytes).toBe(164352);
  });
});

describe("delta nets with full attention in every fourth layer", () => {
  const large = {
    repeats: 10,
    numKvHeads: 2,
    headDim: 256,
    keyHeads: 16,
    keyDim: 128,
    valueHeads: 32,
    valueDim: 128,
  } as const;
  const options = { prefixGranularity: 128, maxPaddingFraction: 1 };
  const state = "linear_attention_1";

  test("put sixteen key blocks where one float32 state lies", () => {
    const groups = deltaNetGroups(large);
    const layout = pack(groups, options);
    expect(packingOf(layout)).toEqual({
      full_attention: 16,
      linear_attention_0: 1,
      linear_attention_1: 1,
      linear_attention_2: 1,
    });
    expect(layout.planes).toHaveLength(20);
    expect([...new Set(Object.values(planeBytesOf(layout)))]).toEqual([2097152]);
    expect(layout.lcmBlockBytes).toBe(41943040);
    expect(paddingOf(layout, groups, "full_attention")).toBe(0);
    expect(paddingOf(layout, groups, state)).toBeCloseTo(0.9542, 4);
    const key = bind(layout, 2).fields.find(({ fieldId }) => fieldId === "layer.3.k");
    expect(key?.arenaOffsetBytes).toBe(1966080);
  });

  test("put eight there when the state is bfloat16", () => {
    const groups = deltaNetGroups({ ...large, stateDtype: "bfloat16" });
    const layout = pack(groups, options);
    expect(packingOf(layout)).toMatchObject({ full_attention: 8, [state]: 1 });
    expect(layout.lcmBlockBytes).toBe(20971520);
    expect(paddingOf(layout, groups, state)).toBeCloseTo(0.9104, 4);
  });

  test("put thirty-two there with twice the value heads", () => {
    const groups = deltaNetGroups({ ...large, repeats: 15, valueHeads: 64 });
    const layout = pack(groups, options);
    expect(packingOf(layout)).toMatchObject({ full_attention: 32, [state]: 1 });
    expect(planeBytesOf(layout)["unit.0.a"]).toBe(4194304);
    expect(layout.lcmBlockBytes).toBe(125829120);
    expect(paddingOf(layout, groups, state)).toBeCloseTo(0.9655, 4);
  });

  test("pay for a draft layer with two planes that their states leave empty", () => {
    const groups = deltaNetGroups({ ...large, draftLayers: 1 });
    expectError(() => pack(groups, options), "invalid_packing", "115.0 %");
    const layout = pack(groups, { ...options, maxPaddingFraction: 1 + 2 / 10 });
    expect(layout.planes).toHaveLength(22);
    expect(layout.lcmBlockBytes).toBe(46137344);
    expect(paddingOf(layout, groups, state)).toBeCloseTo(1.1496, 4);
  });

  test("put two states where one wide key block lies", () => {
    const groups = deltaNetGroups({
      repeats: 2,
      numKvHeads: 1,
      headDim: 32,
      keyHeads: 2,
      keyDim: 16,
      valueHeads: 4,
      valueDim: 16,
    });
    const layout = pack(groups, options);
    expect(packingOf(layout)).toMatchObject({ full_attention: 1, [state]: 2 });
    expect([...new Set(Object.values(planeBytesOf(layout)))]).toEqual([8192]);
    expect(layout.lcmBlockBytes).toBe(32768);
    expect(paddingOf(layout, groups, state)).toBeCloseTo(0.6842, 4);
  });
});

describe("delta attention with latent layers, pinned", () => {
  /** Twelve latent blocks a parent, and as many states as fit beside them. */
  function layoutOf(ranks: number, latentDtype: "uint8" | "bfloat16") {
    const groups = deltaLatentGroups(ranks, latentDtype);
    const bytesOf = (field: CacheGroupDeclaration["fields"][number] | undefined) =>
      field === undefined ? 0 : payloadBytes(field);
    const latent = bytesOf(groups[3]?.fields[0]);
    const stateBytes = bytesOf(groups[0]?.fields[0]) + bytesOf(groups[0]?.fields[1]);
    const states = Math.max(1, Math.floor((12 * latent) / stateBytes));
    const pins = new Map(groups.map(({ spec }) => [spec.groupId, states]));
    pins.set("full_attention", 12);
    return { groups, layout: pack(groups, { prefixGranularity: 128, pins }) };
  }

  test("over eight ranks with 8-bit rows: one state a parent", () => {
    const { groups, layout } = layoutOf(8, "uint8");
    expect(packingOf(layout)).toMatchObject({ full_attention: 12, linear_attention_0: 1 });
    expect(layout.planes).toHaveLength(24);
    expect([...new Set(Object.values(planeBytesOf(layout)))]).toEqual([884736]);
    expect(layout.lcmBlockBytes).toBe(21233664);
    expect(paddingOf(layout, groups, "linear_attention_0")).toBeCloseTo(0.134, 3);
  });

  test("the convolution lies before the recurrent state", () => {
    const fields = layoutOf(8, "uint8").layout.fields.filter(
      ({ planeId, groupId }) => planeId === "slot.0" && groupId === "linear_attention_0",
    );
    expect(fields.map(({ fieldId, fieldOffsetBytes }) => [fieldId, fieldOffsetBytes])).toEqual([
      ["layer.0.conv_state", 0],
      ["layer.0.recurrent_state", 27648],
    ]);
  });

  test("two states a parent with wider rows or fewer heads", () => {
    const wide = layoutOf(8, "bfloat16").layout;
    expect(packingOf(wide)).toMatchObject({ full_attention: 12, linear_attention_0: 2 });
    expect(planeBytesOf(wide)["slot.0"]).toBe(1769472);
    expect(wide.lcmBlockBytes).toBe(42467328);
    const narrow = layoutOf(16, "uint8").layout;
    expect(packingOf(narrow)).toMatchObject({ linear_attention_0: 2 });
    expect(narrow.lcmBlockBytes).toBe(21233664);
  });

  test("a state wider than twelve latent blocks breaks their stride", () => {
    expectError(() => layoutOf(4, "uint8"), "invalid_packing", "needs page stride 73728");
    expectError(() => layoutOf(1, "bfloat16"), "invalid_packing", "needs page stride 147456");
  });
});

describe("compressed histories beside a sliding window", () => {
  const options = { prefixGranularity: 256, alignmentBytes: 256, maxPaddingFraction: 2 };

  test("pack by powers of two, in strides of whole rows", () => {
    const groups = compressedGroups({ indexerHasOwnGroup: false });
    const layout = pack(groups, { ...options, pins: powerOfTwoPins(groups) });
    expect(packingOf(layout)).toEqual({
      "c128.compressed": 64,
      "c128.state": 2,
      "c4.compressed": 2,
      "c4.indexer_state": 8,
      "c4.state": 2,
      swa: 1,
    });
    expect(Object.values(planeBytesOf(layout))).toEqual([110592, 110592, 39168, 39168, 39168, 39168]);
    expect(layout.lcmBlockBytes).toBe(377856);
    const strideOf = (fieldId: string) =>
      layout.fields.find((field) => field.fieldId === fieldId)?.pageStrideBytes;
    expect(strideOf("layer.3.compressed_kv")).toBe(1728);
    expect(strideOf("layer.2.compressed_kv")).toBe(110592 / 2);
  });

  test("take the indexer's keys as a group of their own at no price", () => {
    const groups = compressedGroups({ indexerHasOwnGroup: true });
    const layout = pack(groups, { ...options, pins: powerOfTwoPins(groups) });
    expect(packingOf(layout)).toMatchObject({ "c4.indexer": 8, "c4.compressed": 2, swa: 1 });
    expect(layout.lcmBlockBytes).toBe(377856);
  });
});
