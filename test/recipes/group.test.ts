/** Layers become groups: by label, by window where there are several, in order of first appearance. */
import { describe, expect, test } from "bun:test";
import { groupLayers, layerGroupIds, layerKindOf, windowsOfLayers } from "../../src/recipes/group";
import { byteField } from "../support/cache-fields";
import { expectError } from "../support/expect-error";

const full = "full_attention";
const sliding = "sliding_attention";
const linear = "linear_attention";

type Windows = Parameters<typeof windowsOfLayers>[1];

/** Groups of layers with one field each. */
function grouped(labels: readonly string[], window?: Windows, granularity = 16) {
  return groupLayers({
    labels,
    window,
    prefixGranularity: granularity,
    fieldsForLayer: (layer) => [byteField(`layer.${layer}.k`, `unit.${layer}`, 8)],
  });
}

const idsOf = (labels: readonly string[], window?: Windows) =>
  grouped(labels, window).map(({ spec }) => spec.groupId);

const refusal = (act: () => unknown, ...texts: string[]) => expectError(act, "invalid_layer_types", ...texts);

describe("labels", () => {
  test("mean a full history, a sliding history or a state", () => {
    expect(layerKindOf(full)).toEqual({ family: "history", retention: "fullHistory" });
    expect(layerKindOf("deepseek_sparse_attention")).toEqual({ family: "history", retention: "fullHistory" });
    expect(layerKindOf(sliding)).toEqual({ family: "history", retention: "slidingWindow" });
    expect(layerKindOf(`${sliding}_12`)).toEqual({ family: "history", retention: "slidingWindow" });
    expect(layerKindOf(linear)).toEqual({ family: "state", retention: "fullHistory" });
    expect(layerKindOf(`${linear}_0`)).toEqual({ family: "state", retention: "fullHistory" });
  });

  test("outside the vocabulary are refused with their layer", () => {
    for (const label of ["chunked_attention", `${sliding}_x`, `${sliding}_`, `${full}_1`, ""]) {
      expect(layerKindOf(label)).toBeUndefined();
      refusal(() => grouped([full, label], 4), "layer 1", `'${label}'`);
    }
  });
});

describe("windows", () => {
  test("given once go to the sliding layers only", () => {
    expect(windowsOfLayers([full, sliding, linear], 128)).toEqual([undefined, 128, undefined]);
    expect(windowsOfLayers([full, full], 128)).toEqual([undefined, undefined]);
  });

  test("given by layer must fit the labels one by one", () => {
    expect(windowsOfLayers([sliding, full], [4, undefined])).toEqual([4, undefined]);
    refusal(() => windowsOfLayers([sliding, full], [4]), "1 windows were given for 2 layers");
    refusal(() => windowsOfLayers([full, sliding], [undefined, undefined]), "layer 1 slides");
    refusal(() => windowsOfLayers([full], [4]), "layer 0 does not slide");
    refusal(() => windowsOfLayers([linear], [4]), "layer 0 does not slide");
  });

  test("are positive whole numbers wherever a layer slides", () => {
    const odd = [undefined, 0, -1, 1.5, Number.NaN, true, "128", null] as unknown as number[];
    for (const window of odd) {
      refusal(() => windowsOfLayers([sliding], [window]), "layer 0 slides");
      if (window !== null) refusal(() => windowsOfLayers([sliding], window), "layer 0 slides");
    }
  });
});

describe("group ids", () => {
  test("are the labels while one window serves all", () => {
    expect(layerGroupIds([sliding, full, sliding], [4, undefined, 4])).toEqual([sliding, full, sliding]);
  });

  test("name the window as soon as there are two", () => {
    expect(layerGroupIds([sliding, full, sliding], [4, undefined, 512])).toEqual([
      `${sliding}_4`,
      full,
      `${sliding}_512`,
    ]);
  });
});

describe("grouping", () => {
  test("keeps the order of first appearance", () => {
    expect(idsOf([full, full])).toEqual([full]);
    expect(idsOf([linear, sliding, full, sliding], 8)).toEqual([linear, sliding, full]);
    expect(idsOf([sliding, full, sliding, sliding], [4, undefined, 512, 4])).toEqual([
      `${sliding}_4`,
      full,
      `${sliding}_512`,
    ]);
  });

  test("puts the window on the sliding groups only", () => {
    const [narrow, wide] = grouped([sliding, full], 128);
    expect(narrow?.spec).toEqual({
      groupId: sliding,
      family: "history",
      retention: "slidingWindow",
      slidingWindowTokens: 128,
      shape: { kind: "rows", rowsPerPage: 16, entryStrideTokens: 1 },
    });
    expect(wide?.spec.slidingWindowTokens).toBeUndefined();
  });

  test("gives numbered sliding labels a group each", () => {
    const labels = [0, 1, 2, 3, 4].map((k) => `${sliding}_${k}`);
    const groups = grouped([...labels, full, ...labels], 512);
    expect(groups.map(({ spec }) => spec.groupId)).toEqual([...labels, full]);
    expect(groups.slice(0, 5).map(({ spec }) => spec.slidingWindowTokens)).toEqual(Array(5).fill(512));
  });

  test("turns linear attention into a state with a checkpoint every prefix step", () => {
    const [state] = grouped([linear, full]);
    expect(state?.spec).toEqual({
      groupId: linear,
      family: "state",
      retention: "fullHistory",
      shape: { kind: "checkpoint", checkpointGranularity: 16 },
    });
  });

  test("counts, for each group, the layers before that declared a field", () => {
    const seen: string[] = [];
    groupLayers({
      labels: [full, sliding, full, sliding, full],
      window: 4,
      prefixGranularity: 8,
      fieldsForLayer: (layer, groupId, occurrence) => {
        seen.push(`${layer} ${groupId} ${occurrence}`);
        return layer === 0 ? [] : [byteField(`layer.${layer}.k`, `unit.${occurrence}`, 8)];
      },
    });
    expect(seen).toEqual([
      "0 full_attention 0",
      "1 sliding_attention 0",
      "2 full_attention 0",
      "3 sliding_attention 1",
      "4 full_attention 1",
    ]);
  });

  test("refuses a group none of whose layers declares a field", () => {
    refusal(
      () =>
        groupLayers({ labels: [full], window: undefined, prefixGranularity: 8, fieldsForLayer: () => [] }),
      `'${full}' has no fields`,
    );
  });
});
