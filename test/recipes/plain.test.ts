/**
 * Ordinary attention: layers of all groups share planes by
 * their place in the group, one block a parent for each.
 */
import { describe, expect, test } from "bun:test";
import { bind } from "../../src/recipes/bind";
import { type PlainCacheInput, plainCacheGroups, plainCacheLayout } from "../../src/recipes/plain";

const shape = {
  numKvHeads: 1,
  headDim: 16,
  vHeadDim: 16,
  kvDtype: "bfloat16",
  prefixGranularity: 16,
} as const satisfies Partial<PlainCacheInput>;

function layoutOf(input: PlainCacheInput) {
  return plainCacheLayout(plainCacheGroups(input), input.prefixGranularity);
}

describe("the plain family", () => {
  test("gives each layer its key and value rows under its number in the model", () => {
    const [group] = plainCacheGroups({ ...shape, layerLabels: ["full_attention", "full_attention"] });
    expect(group?.fields).toEqual([
      { fieldId: "layer.0.k", planeId: "unit.0.k", shape: [16, 1, 16], dtype: "bfloat16" },
      { fieldId: "layer.0.v", planeId: "unit.0.v", shape: [16, 1, 16], dtype: "bfloat16" },
      { fieldId: "layer.1.k", planeId: "unit.1.k", shape: [16, 1, 16], dtype: "bfloat16" },
      { fieldId: "layer.1.v", planeId: "unit.1.v", shape: [16, 1, 16], dtype: "bfloat16" },
    ]);
  });

  test("needs one block a layer in the larger group only, however the layers are mixed", () => {
    const labels = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"];
    const layout = layoutOf({ ...shape, layerLabels: labels, window: 32 });
    expect(layout.planes).toHaveLength(6);
    expect(layout.groupPacking.map((group) => group.cacheBlocksPerLcmBlock)).toEqual([1, 1]);
    const planesOf = (groupId: string) =>
      layout.fields.filter((field) => field.groupId === groupId).map(({ planeId }) => planeId);
    expect(planesOf("full_attention")).toEqual(["unit.0.k", "unit.0.v"]);
  });

  test("keeps the strides exact for odd head dimensions and unequal key and value widths", () => {
    const layout = layoutOf({
      ...shape,
      layerLabels: ["full_attention"],
      numKvHeads: 3,
      headDim: 5,
      vHeadDim: 7,
    });
    expect(layout.fields.map(({ payloadBytes, pageStrideBytes }) => [payloadBytes, pageStrideBytes])).toEqual(
      [
        [16 * 3 * 5 * 2, 16 * 3 * 5 * 2],
        [16 * 3 * 7 * 2, 16 * 3 * 7 * 2],
      ],
    );
    expect(bind(layout, 2).arenaBytes).toBe(3 * 16 * 3 * 12 * 2);
  });
});
