/** What the scheduler is told of a recipe: one granularity a group and no word about rows or checkpoints. */
import { expect, test } from "bun:test";
import { bind } from "../../src/recipes/bind";
import { cacheGroupConfigs } from "../../src/recipes/bridge";
import { pack } from "../../src/recipes/pack";
import { byteField, historyGroup, slidingGroup, stateGroup } from "../support/cache-fields";

const groups = [
  slidingGroup("window", 16, 128, [byteField("w", "plane", 32)]),
  historyGroup("full", 16, [byteField("f", "plane", 32)]),
  stateGroup("state", 64, [byteField("s", "plane", 64)]),
];
const plan = bind(pack(groups, { prefixGranularity: 64, alignmentBytes: 1 }), 5);
const configs = cacheGroupConfigs(
  groups.map(({ spec }) => spec),
  plan,
);

test("the groups cross in the order of their declaration, with spans folded to tokens a block", () => {
  expect(configs.map(({ groupId, blockGranularity }) => [groupId, blockGranularity])).toEqual([
    ["window", 16],
    ["full", 16],
    ["state", 64],
  ]);
});

test("packing and page counts are those of the bound plan", () => {
  expect(configs.map((config) => [config.cacheBlocksPerLcmBlock, config.totalBlocks])).toEqual([
    [2, 11],
    [2, 11],
    [1, 6],
  ]);
});

test("nothing else crosses", () => {
  expect(configs[0]).toEqual({
    groupId: "window",
    blockGranularity: 16,
    cacheBlocksPerLcmBlock: 2,
    shardCount: 1,
    retention: "slidingWindow",
    slidingWindowTokens: 128,
    replayable: false,
    family: "history",
    totalBlocks: 11,
  });
  expect(Object.keys(configs[2] ?? {})).not.toContain("slidingWindowTokens");
});
