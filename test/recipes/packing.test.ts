/**
 * How many blocks of each group share an LCM block: ratios,
 * exact strides, flexible growth, pins, and what is refused.
 */
import { describe, expect, test } from "bun:test";
import type { CacheGroupDeclaration } from "../../src/recipes/cache-spec";
import { type PackOptions, pack } from "../../src/recipes/pack";
import { exactStridePacking, tenantsOf } from "../../src/recipes/packing";
import { byteField, historyGroup, stateGroup } from "../support/cache-fields";
import { expectError } from "../support/expect-error";

const loose = { exactPageStride: false };

function layoutOf(groups: readonly CacheGroupDeclaration[], options: Partial<PackOptions> = {}) {
  return pack(groups, { prefixGranularity: 8, alignmentBytes: 1, maxPaddingFraction: 4, ...options });
}

function packingOf(groups: readonly CacheGroupDeclaration[], options: Partial<PackOptions> = {}) {
  const { groupPacking } = layoutOf(groups, options);
  return Object.fromEntries(groupPacking.map((group) => [group.groupId, group.cacheBlocksPerLcmBlock]));
}

const packingError = (act: () => unknown, ...texts: string[]) =>
  expectError(act, "invalid_packing", ...texts);

describe("without pins", () => {
  test("a group gets the whole part of the widest group's bytes over its own", () => {
    const groups = [
      historyGroup("narrow", 8, [byteField("a", "plane.a", 30)]),
      historyGroup("wide", 8, [byteField("b", "plane.b", 100)]),
    ];
    expect(packingOf(groups)).toEqual({ narrow: 3, wide: 1 });
  });

  test("groups that share a plane get the packing at which each steps by its own payload", () => {
    const history = historyGroup("history", 128, [
      { fieldId: "k", planeId: "unit.a", shape: [128, 1, 8], dtype: "bfloat16" },
      { fieldId: "v", planeId: "unit.b", shape: [128, 1, 8], dtype: "bfloat16" },
    ]);
    const state = stateGroup("state", 128, [
      { fieldId: "ssm", planeId: "unit.a", shape: [128], dtype: "bfloat16" },
    ]);
    expect(packingOf([history, state])).toEqual({ history: 1, state: 8 });
  });

  test("large exact ratios are kept", () => {
    const groups = [
      historyGroup("byte", 8, [byteField("a", "plane", 1)]),
      historyGroup("page", 8, [byteField("b", "plane", 256)]),
    ];
    expect(packingOf(groups)).toEqual({ byte: 256, page: 1 });
  });

  test("a chain of shared planes is solved together, in the smallest whole numbers", () => {
    const groups = [
      historyGroup("a", 8, [byteField("a.1", "plane.1", 6)]),
      historyGroup("b", 8, [byteField("b.1", "plane.1", 4), byteField("b.2", "plane.2", 10)]),
      historyGroup("c", 8, [byteField("c.2", "plane.2", 4)]),
    ];
    // a*6 = b*4 and b*10 = c*4: a = 2b/3, c = 5b/2, so b = 6.
    expect(packingOf(groups)).toEqual({ a: 4, b: 6, c: 15 });
  });

  test("planes that contradict each other leave the byte ratio, and their exact fields refuse it", () => {
    const groups = [
      historyGroup("a", 8, [byteField("a.1", "plane.1", 2), byteField("a.2", "plane.2", 2)]),
      historyGroup("b", 8, [byteField("b.1", "plane.1", 4), byteField("b.2", "plane.2", 6)]),
    ];
    expect(exactStridePacking(tenantsOf(groups)).size).toBe(0);
    packingError(() => layoutOf(groups), "needs page stride");
  });

  test("a flexible group fills what the exact ones leave, in whole elements", () => {
    const groups = [
      historyGroup("exact", 8, [byteField("e", "plane", 64)]),
      historyGroup("flexible", 8, [
        { fieldId: "f", planeId: "plane", shape: [3], dtype: "float32", ...loose },
      ]),
    ];
    // 64 / 12 gives room for 5; the largest count whose stride is whole float32s is 4.
    expect(packingOf(groups)).toEqual({ exact: 1, flexible: 4 });
    const flexible = layoutOf(groups).fields.find(({ fieldId }) => fieldId === "f");
    expect(flexible?.pageStrideBytes).toBe(16);
  });

  test("a flexible group with a plane of its own keeps the ratio", () => {
    const groups = [
      historyGroup("exact", 8, [byteField("e", "plane.1", 64)]),
      historyGroup("flexible", 8, [byteField("f", "plane.1", 8, loose), byteField("g", "plane.2", 8, loose)]),
    ];
    // Plane 1 alone would have room for 8.
    expect(packingOf(groups)).toEqual({ exact: 1, flexible: 4 });
  });
});

describe("pins", () => {
  const groups = [
    historyGroup("a", 8, [byteField("a", "plane.a", 256)]),
    historyGroup("b", 8, [byteField("b", "plane.b", 100)]),
    historyGroup("c", 8, [byteField("c", "plane.c", 64)]),
  ];

  test("are taken as they are, however large", () => {
    const pins = new Map([
      ["a", 1],
      ["b", 513],
      ["c", 7],
    ]);
    expect(packingOf(groups, { pins, maxPaddingFraction: 1e6 })).toEqual({ a: 1, b: 513, c: 7 });
  });

  test("of some groups leave the others as they would be solved", () => {
    const pins = new Map([["a", 3]]);
    expect(packingOf(groups)).toEqual({ a: 1, b: 2, c: 4 });
    expect(packingOf(groups, { pins, maxPaddingFraction: 8 })).toEqual({ a: 3, b: 2, c: 4 });
  });

  test("must name groups of the plan and be positive whole numbers", () => {
    packingError(() => layoutOf(groups, { pins: new Map([["z", 1]]) }), "'z'", "outside the plan");
    for (const count of [0, -1, 1.5, Number.NaN]) {
      packingError(() => layoutOf(groups, { pins: new Map([["a", count]]) }), "'a'", "positive integer");
    }
  });

  test("do not loosen exact strides", () => {
    const sharing = [
      historyGroup("a", 8, [byteField("a", "plane", 256)]),
      historyGroup("b", 8, [byteField("b", "plane", 100)]),
    ];
    const pins = new Map([
      ["a", 1],
      ["b", 1],
    ]);
    packingError(() => layoutOf(sharing, { pins }), "b needs page stride 100", "256", "widest tenant is a");
  });
});

describe("the layout", () => {
  test("places the fields of a group on a plane one after another, each at its own alignment", () => {
    const group = stateGroup("state", 8, [
      byteField("conv", "plane", 3, loose),
      { fieldId: "recurrent", planeId: "plane", shape: [2], dtype: "float32", ...loose },
      { fieldId: "step", planeId: "plane", shape: [1], dtype: "int64", ...loose },
    ]);
    const layout = layoutOf([group]);
    expect(layout.fields.map((field) => [field.fieldId, field.fieldOffsetBytes])).toEqual([
      ["conv", 0],
      ["recurrent", 4],
      ["step", 16],
    ]);
    expect(layout.lcmBlockBytes).toBe(24);
  });

  test("keeps the stride alignment a field asks for", () => {
    const groups = [
      historyGroup("padded", 64, [
        byteField("p", "plane", 576, { ...loose, shape: [64, 9], pageStrideAlignmentBytes: 576 }),
      ]),
      historyGroup("other", 64, [byteField("o", "plane", 6000, loose)]),
    ];
    const layout = layoutOf(groups, { alignmentBytes: 256, maxPaddingFraction: 8 });
    const stride = layout.fields.find(({ fieldId }) => fieldId === "p")?.pageStrideBytes ?? 0;
    expect(stride).toBeGreaterThanOrEqual(576);
    expect(stride % 576).toBe(0);
  });

  test("sorts planes and fields as text, so that unit.10 stands before unit.2", () => {
    const group = historyGroup(
      "g",
      8,
      [2, 10, 1].map((i) => byteField(`layer.${i}.k`, `unit.${i}.k`, 8)),
    );
    const layout = layoutOf([group]);
    expect(layout.planes.map(({ planeId }) => planeId)).toEqual(["unit.1.k", "unit.10.k", "unit.2.k"]);
    expect(layout.fields.map(({ fieldId }) => fieldId)).toEqual(["layer.1.k", "layer.10.k", "layer.2.k"]);
  });

  test("refuses two fields of one name", () => {
    const groups = ["a", "b"].map((id) => historyGroup(id, 8, [byteField("layer.0.k", id, 8)]));
    expectError(() => layoutOf(groups), "invalid_cache_fields", "unique");
  });

  test("refuses more waste than is allowed, naming the group and the share", () => {
    const groups = [
      historyGroup("a", 8, [byteField("a", "plane.a", 256)]),
      historyGroup("b", 8, [byteField("b", "plane.b", 100)]),
    ];
    const pins = new Map([
      ["a", 1],
      ["b", 1],
    ]);
    // One block of b takes 356 bytes to hold 100.
    packingError(() => layoutOf(groups, { pins, maxPaddingFraction: 2.55 }), "'b'", "256.0 %");
    expect(layoutOf(groups, { pins, maxPaddingFraction: 2.56 }).lcmBlockBytes).toBe(356);
  });

  test("refuses an LCM block beyond what an integer can count", () => {
    const group = historyGroup("g", 8, [
      byteField("k", "plane", 8, { shape: [2 ** 30, 2 ** 30], dtype: "float64" }),
    ]);
    packingError(() => layoutOf([group]), "too large");
  });

  test("refuses options that mean nothing", () => {
    const group = historyGroup("g", 8, [byteField("k", "plane", 8)]);
    const faulty: Partial<PackOptions>[] = [
      { prefixGranularity: 0 },
      { prefixGranularity: 1.5 },
      { alignmentBytes: 0 },
      { maxPaddingFraction: -0.1 },
      { maxPaddingFraction: Number.NaN },
    ];
    for (const options of faulty) packingError(() => layoutOf([group], options));
  });
});
