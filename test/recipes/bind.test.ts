/**
 * Capacity turns a layout into addresses: block 0 is the null
 * parent's last child, block 1 the first child of parent 1.
 */
import { describe, expect, test } from "bun:test";
import { bind, type CacheMemoryPlan } from "../../src/recipes/bind";
import { type CacheLayout, pack } from "../../src/recipes/pack";
import { byteField, historyGroup } from "../support/cache-fields";
import { expectError } from "../support/expect-error";
import { Random } from "../support/random";

const pairOfGroups = pack(
  [
    historyGroup("small", 8, [byteField("small.k", "plane", 64)]),
    historyGroup("large", 8, [byteField("large.k", "plane", 256)]),
  ],
  { prefixGranularity: 8 },
);

/** Parent and child by the address rule, one block at a time. */
function addressOf(plan: CacheMemoryPlan, layout: CacheLayout, fieldId: string, block: number): number {
  const field = layout.fields.find((candidate) => candidate.fieldId === fieldId);
  const group = layout.groupPacking.find((candidate) => candidate.groupId === field?.groupId);
  const plane = plan.planes.find((candidate) => candidate.planeId === field?.planeId);
  if (field === undefined || group === undefined || plane === undefined) throw new Error(fieldId);
  const count = group.cacheBlocksPerLcmBlock;
  const [parent, child] =
    block === 0 ? [0, count - 1] : [1 + Math.floor((block - 1) / count), (block - 1) % count];
  const parentOffset = plane.arenaOffsetBytes + parent * plane.bytesPerLcmBlock;
  return parentOffset + child * field.pageStrideBytes + field.fieldOffsetBytes;
}

function expectAddressesByParentAndChild(plan: CacheMemoryPlan, layout: CacheLayout): void {
  for (const field of plan.fields) {
    const group = plan.groups.find(({ groupId }) => groupId === field.groupId);
    for (let block = 0; block < (group?.pageCount ?? 0); block++) {
      const address = field.arenaOffsetBytes + block * field.pageStrideBytes;
      expect(address).toBe(addressOf(plan, layout, field.fieldId, block));
      expect(address + field.payloadBytes).toBeLessThanOrEqual(plan.arenaBytes);
    }
  }
}

describe("binding", () => {
  test("counts a page for every block of every parent, and one null page", () => {
    const plan = bind(pairOfGroups, 7);
    expect(plan.groups).toEqual([
      { groupId: "large", cacheBlocksPerLcmBlock: 1, pageCount: 8 },
      { groupId: "small", cacheBlocksPerLcmBlock: 4, pageCount: 29 },
    ]);
    expect(plan.arenaBytes).toBe(8 * 256);
  });

  test("changes page counts and plane offsets with the capacity, and nothing else", () => {
    const layout = pack(
      [historyGroup("g", 8, [byteField("k", "plane.k", 256), byteField("v", "plane.v", 512)])],
      { prefixGranularity: 8 },
    );
    const [small, large] = [bind(layout, 2), bind(layout, 5)];
    expect([small.groups[0]?.pageCount, large.groups[0]?.pageCount]).toEqual([3, 6]);
    expect(small.planes.map(({ arenaOffsetBytes }) => arenaOffsetBytes)).toEqual([0, 3 * 256]);
    expect(large.planes.map(({ arenaOffsetBytes }) => arenaOffsetBytes)).toEqual([0, 6 * 256]);
    expect(large.lcmBlockBytes).toBe(small.lcmBlockBytes);
    expect(large.fields.map(({ pageStrideBytes }) => pageStrideBytes)).toEqual([256, 512]);
  });

  test("derives the arena from the geometry", () => {
    const group = historyGroup("g", 8, [{ fieldId: "k", planeId: "p", shape: [8, 16], dtype: "bfloat16" }]);
    const layout = pack([group], { prefixGranularity: 8, pins: new Map([["g", 4]]) });
    expect(layout.lcmBlockBytes).toBe(1024);
    expect(bind(layout, 4).arenaBytes).toBe(5120);
  });

  test("gives every block the address of its parent and child", () => {
    expectAddressesByParentAndChild(bind(pairOfGroups, 7), pairOfGroups);
  });

  test("keeps that rule, and blocks of one group apart, for any groups that can be packed", () => {
    const random = new Random(7);
    for (let round = 0; round < 60; round++) {
      const groups = Array.from({ length: random.integer(1, 3) }, (_, g) =>
        historyGroup(
          `g${g}`,
          8,
          Array.from({ length: random.integer(1, 3) }, (_, f) =>
            byteField(`g${g}.f${f}`, `plane.${random.integer(0, 2)}`, random.integer(1, 40), {
              exactPageStride: false,
            }),
          ),
        ),
      );
      const layout = pack(groups, { prefixGranularity: 8, alignmentBytes: 16, maxPaddingFraction: 1e9 });
      const plan = bind(layout, random.integer(1, 4));
      expectAddressesByParentAndChild(plan, layout);
      expectNoOverlapWithinGroups(plan);
    }
  });

  test("is plain data that survives JSON", () => {
    const plan = bind(pairOfGroups, 3);
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan);
  });

  test("refuses a capacity that is no positive whole number", () => {
    for (const count of [0, -1, 1.5, Number.NaN, true, "2"] as unknown as number[]) {
      expectError(() => bind(pairOfGroups, count), "invalid_capacity", "positive integer");
    }
  });

  test("refuses more blocks than an int32 can name, and more bytes than a number can count", () => {
    const numLcmBlocks = Math.floor((2 ** 31 - 1) / 4);
    expect(bind(pairOfGroups, numLcmBlocks).groups[1]?.pageCount).toBe(1 + numLcmBlocks * 4);
    expectError(() => bind(pairOfGroups, numLcmBlocks + 1), "invalid_capacity", "'small'", "int32");
    const vast = pack([historyGroup("g", 8, [byteField("k", "p", 2 ** 40)])], { prefixGranularity: 8 });
    expectError(() => bind(vast, 2 ** 14), "invalid_capacity", "address space");
  });
});

function expectNoOverlapWithinGroups(plan: CacheMemoryPlan): void {
  for (const { groupId, pageCount } of plan.groups) {
    const ranges = plan.fields
      .filter((field) => field.groupId === groupId)
      .flatMap((field) =>
        Array.from({ length: pageCount }, (_, block) => {
          const begin = field.arenaOffsetBytes + block * field.pageStrideBytes;
          return { begin, end: begin + field.payloadBytes };
        }),
      )
      .sort((a, b) => a.begin - b.begin);
    ranges.slice(1).forEach((range, i) => {
      expect(range.begin).toBeGreaterThanOrEqual(ranges[i]?.end ?? 0);
    });
  }
}
