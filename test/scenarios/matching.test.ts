/** The boundary that all groups can resume at, and clearing what is cached. */
import { describe, expect } from "bun:test";
import { CacheGroup } from "../../src/cache/cache-group";
import { deviceBoundaryResidency } from "../../src/cache/coordinator/boundary-residency";
import { clearCache, clearDeviceCache } from "../../src/cache/coordinator/cache-clearing";
import { BlockPool } from "../../src/cache/core/block-pool";
import { Int32BufferPool } from "../../src/cache/core/int32-buffer-pool";
import { LcmCensus } from "../../src/cache/core/lcm-census";
import { resolveSettings, specOf } from "../../src/scheduler/settings";
import { blocksOf, CacheDriver, chunk, endpoint, F, M, R, W } from "../cache/cache-driver";
import { configOf } from "../scheduler/driver";
import { scenario } from "./scenario";

type Groups = ConstructorParameters<typeof CacheDriver>[0]["groups"];

/** Caches these pages in each group and probes `keys` pages. */
function probed(groups: Groups, cached: number[][], keys: number, P = 4) {
  const d = new CacheDriver({ P, pool: 64, groups });
  const prompt = d.prompt(keys);
  for (const [group, pages] of cached.entries()) d.cachePages(group, prompt, pages);
  const probe = d.probe(prompt, keys);
  return { d, prompt, probe, common: probe.deviceTokens, shapes: groups.map((_, g) => d.shapeOf(probe, g)) };
}

const hits = (shape: number[]) => shape.filter((slot) => slot === 1).length;
const upTo = (count: number) => Array.from({ length: count }, (_, page) => page);

describe("a coordinator's groups", () => {
  scenario(
    112,
    113,
    116,
    121,
    246,
    247,
    248,
  )("keep their kind, span and packing", () => {
    const config = configOf({ P: 128, pool: 4, T: 1024, groups: [F(128, 16), W(128, 16), M(128), M(64)] });
    expect(resolveSettings(config).specs).toMatchObject([
      { group: 0, kind: "full", windowTokens: 0, cacheBlocksPerLcmBlock: 16 },
      { group: 1, kind: "slidingWindow", windowTokens: 128, cacheBlocksPerLcmBlock: 1 },
      { group: 2, kind: "state", windowTokens: 0, blockGranularity: 128 },
      { group: 3, kind: "state", blockGranularity: 64 },
    ]);
    const d = new CacheDriver({ P: 8, pool: 32, groups: [F(8, 2), W(8, 2, 3)] });
    expect(d.coordinator.groups.map((group) => group.geometry.blockGranularity)).toEqual([8, 2]);
  });

  scenario(114)("of one span and different packings publish and match together", () => {
    const d = new CacheDriver({ P: 128, pool: 32, groups: [F(128, 8), M(128), M(128), M(128)] });
    const prompt = d.prompt(1);
    const tables = d.tables();
    d.admit(tables, 128, { prompt });
    expect(tables.map((table) => table.length)).toEqual([1, 1, 1, 1]);
    d.publish(tables, { prompt, to: 1, kind: endpoint, records: [128] }, 128, 1);
    d.free(tables);
    const probe = d.probe(prompt, 1);
    expect([probe.deviceTokens, ...upTo(4).map((g) => d.shapeOf(probe, g))]).toEqual([
      128,
      [1],
      [1],
      [1],
      [1],
    ]);
  });

  scenario(
    115,
    117,
    503,
  )("expand one page into the blocks of each group", () => {
    const d = new CacheDriver({ P: 8, pool: 32, groups: [F(8, 2), W(5, 2, 3)] });
    const prompt = d.prompt(1);
    const tables = d.tables();
    d.admit(tables, 8, { prompt });
    d.publish(tables, { prompt, to: 1 }, 8, 1);
    d.free(tables);
    expect(d.isCached(0, prompt, 0)).toBe(true);
    expect(upTo(4).map((offset) => d.isCached(1, prompt, 0, offset))).toEqual([false, false, true, true]);
    const probe = d.probe(prompt, 1);
    expect([probe.deviceTokens, d.shapeOf(probe, 0), d.shapeOf(probe, 1)]).toEqual([8, [1], [0, 0, 1, 1]]);
  });

  scenario(
    118,
    119,
    502,
  )("are refused when their geometry contradicts the pool's or the prefix grain", () => {
    const build = (P: number, groups: Groups) => () => new CacheDriver({ P, pool: 4, groups });
    expect(build(0, [F(4)])).toThrow("must be positive");
    expect(build(4, [F(4, 0)])).toThrow("must be positive");
    expect(build(128, [F(48)])).toThrow("not divide");
    const pool = new BlockPool(4, [1]);
    const tier = { pool, census: new LcmCensus(pool) };
    const group =
      (shape: Groups[number], id = 0) =>
      () =>
        new CacheGroup(specOf({ groupId: "g", ...shape }, id), 4, tier, undefined, new Int32BufferPool());
    expect(group(F(4, 8))).toThrow("disagree");
    pool.registerShards(0, 1);
    expect(group({ ...F(4), shardCount: 2 })).toThrow("does not divide");
    expect(() =>
      new CacheDriver({
        P: 4,
        pool: 4,
        groups: [F(4)],
      }).coordinator.groups[0].allocator.refs.pool.registerShards(0, 2),
    ).toThrow();
  });

  scenario(
    120,
    259,
    260,
  )("name blocks by one formula and refuse places that do not exist", () => {
    const eight = new BlockPool(2, [8]);
    expect([eight.blockAt(0, 1, 0), eight.blockAt(0, 1, 7), eight.blockAt(0, 2, 0)]).toEqual([1, 8, 9]);
    expect(new BlockPool(2, [1]).blockAt(0, 2, 0)).toBe(2);
    for (const [parent, slot] of [
      [0, 0],
      [1, -1],
      [1, 8],
      [0x7fff_ffff, 7],
    ]) {
      expect(() => eight.blockAt(0, parent, slot)).toThrow("outside");
    }
    const d = new CacheDriver({ P: 2, pool: 4, groups: [F(2, 2), F(2, 1)] });
    const tables = d.tables();
    d.admit(tables, 4);
    expect([blocksOf(tables[0]), d.parents(tables[0])]).toEqual([
      [1, 2],
      [1, 1],
    ]);
    expect(d.parents(tables[1], 1)).toEqual(blocksOf(tables[1]));
  });
});

describe("the common boundary of a probe", () => {
  const fw = [F(4), W(10, 4)];

  scenario(122, 126)("is nothing where one group has nothing", () => {
    expect(probed(fw, [[], []], 2)).toMatchObject({ common: 0, shapes: [[], []] });
    expect(probed(fw, [[0, 1], []], 2).common).toBe(0);
  });

  scenario(
    123,
    124,
    125,
  )("is what the shortest group covers, and looking changes no epoch", () => {
    const { d, common, shapes, prompt } = probed(fw, [upTo(4), [0, 1, 2]], 4);
    expect([common, shapes]).toEqual([
      12,
      [
        [1, 1, 1],
        [1, 1, 1],
      ],
    ]);
    const block = d.index(0).find(prompt.chain.words, 24, 0);
    const epoch = d.index(0).epochOf(block);
    d.probe(prompt, 4);
    expect(d.index(0).epochOf(block)).toBe(epoch);
    const single = probed([F(4)], [[0, 1]], 1);
    expect([single.common, single.d.empty]).toEqual([4, 62]);
  });

  scenario(127, 128)("moves down until a window's whole run lies in front of it", () => {
    expect(probed(fw, [upTo(4), [2, 3, 4]], 5)).toMatchObject({ common: 0, shapes: [[], []] });
    const bounded = probed(fw, [upTo(4), [1, 2, 3, 4]], 5);
    expect([bounded.common, bounded.shapes]).toEqual([
      16,
      [
        [1, 1, 1, 1],
        [0, 1, 1, 1],
      ],
    ]);
  });

  scenario(
    129,
    130,
    131,
    134,
  )("converges over several windows, in whatever order they stand", () => {
    const two = probed([F(4), W(10, 4), W(10, 4)], [upTo(5), [1, 2, 3], [1, 2, 3]], 5);
    expect([two.common, two.shapes.slice(1)]).toEqual([
      16,
      [
        [0, 1, 1, 1],
        [0, 1, 1, 1],
      ],
    ]);
    const A = [0, 2, 3, 4];
    const B = [0, 1, 2, 3];
    expect(probed([F(4), W(10, 4), W(10, 4)], [upTo(6), A, B], 6)).toMatchObject({ common: 4 });
    expect(probed([W(10, 4), F(4), W(10, 4)], [B, upTo(6), A], 6).common).toBe(4);
    const deep = probed([F(4), W(10, 4), W(10, 4)], [upTo(8), [0, 1, 2, 4, 5, 6], [0, 1, 3, 4, 5]], 8);
    expect([deep.common, ...deep.shapes.map(hits)]).toEqual([8, 2, 2, 2]);
  });

  scenario(132, 133)("is shared by windows of different widths, or is nothing", () => {
    const groups = [F(2), W(6, 2), W(2, 2)];
    const shared = probed(groups, [upTo(5), [2, 3, 4], [4]], 5, 2);
    expect([shared.common, ...shared.shapes.map(hits)]).toEqual([10, 5, 3, 1]);
    expect(probed(groups, [upTo(5), [2, 3, 4], [3]], 5, 2)).toMatchObject({
      common: 0,
      shapes: [[], [], []],
    });
  });

  scenario(
    135,
    136,
    137,
    138,
  )("is the least over any number of groups", () => {
    expect(probed([F(4), F(4)], [upTo(3), upTo(2)], 3)).toMatchObject({
      common: 8,
      shapes: [
        [1, 1],
        [1, 1],
      ],
    });
    expect(probed([F(4)], [upTo(2)], 3).common).toBe(8);
    const three = [F(4), W(40, 4), W(40, 4)];
    expect(probed(three, [upTo(4), [0, 1], [0, 1, 2]], 4)).toMatchObject({ common: 8 });
    expect(probed(three, [[0, 1], [], [0, 1]], 2).common).toBe(0);
  });

  scenario(139)("says nothing of how much each window can drop: that adds up", () => {
    const d = new CacheDriver({ P: 2, pool: 15, groups: [F(2), W(6, 2), W(2, 2)] });
    const tables = d.tables();
    d.admit(tables, 10);
    d.admit(tables, 0, { epoch: 1, c: 10 });
    expect([d.empty, blocksOf(tables[0]).includes(0)]).toEqual([6, false]);
    expect(tables.map((table) => table.reclaimedBlocks)).toEqual([0, 2, 4]);
  });
});

describe("clearing", () => {
  const both = () => {
    const d = new CacheDriver({ P: 4, pool: 4, host: 4, groups: [F(4)] });
    const prompt = d.prompt(1);
    d.cache(0, prompt, 0);
    d.cache(0, prompt, 0, { tier: "host" });
    return { d, prompt };
  };

  scenario(140, 141)("empties the device, or both tiers", () => {
    const { d, prompt } = both();
    expect(clearDeviceCache(d.coordinator)).toBe(true);
    const probe = d.probe(prompt, 1);
    expect([probe.deviceTokens, probe.hostTokens, d.empty, d.hostEmpty]).toEqual([0, 4, 4, 3]);
    const other = both();
    expect(clearCache(other.d.coordinator)).toBe(true);
    expect([other.d.probe(other.prompt, 1).hostTokens, other.d.empty, other.d.hostEmpty]).toEqual([0, 4, 4]);
  });

  scenario(142, 504)("touches nothing while one entry is in use", () => {
    const d = new CacheDriver({ P: 4, pool: 4, groups: [F(4)] });
    const prompt = d.prompt(2);
    const [block] = d.cachePages(0, prompt, [0, 1]);
    d.index().refs.retain(block);
    expect([clearDeviceCache(d.coordinator), d.probe(prompt, 2).deviceTokens]).toEqual([false, 8]);
    d.index().refs.release(block);
    expect([clearDeviceCache(d.coordinator), d.probe(prompt, 2).deviceTokens]).toEqual([true, 0]);
  });
});

describe("promotion", () => {
  const promotionOf = (groups: Groups, cached: number[][], host: number[][] = [], keys = 8) => {
    const d = new CacheDriver({ P: 4, pool: 64, host: host.length > 0 ? 64 : 0, groups });
    const prompt = d.prompt(keys);
    for (const [group, pages] of cached.entries()) d.cachePages(group, prompt, pages);
    for (const [group, pages] of host.entries()) d.cachePages(group, prompt, pages, "host");
    const probe = d.probe(prompt, keys);
    return [probe.hostTokens, probe.closedTokens, probe.promotionBoundary];
  };

  scenario(186)("points at what full history covers beyond the common boundary", () => {
    expect(promotionOf([F(4), M(4)], [upTo(8), [3]])).toEqual([16, 32, 32]);
    const { d, prompt } = probed([F(4), M(4)], [upTo(8), [3]], 8);
    d.admit(d.tables(), [{ extent: 20, first: 4 } as never, { extent: 20, first: 4 }], {
      probe: d.probe(prompt, 8),
      prompt,
    });
    expect(d.coordinator.result.promotionBoundary).toBe(32);
  });

  scenario(187)("goes no further than the shortest full history", () => {
    expect(promotionOf([F(4), F(4), M(4)], [upTo(8), upTo(6), [3]])).toEqual([16, 24, 24]);
  });

  scenario(188, 189)("needs full history to be the longer one, or to exist", () => {
    expect(promotionOf([F(4), W(10, 4)], [upTo(4), [1, 2, 3, 5, 6, 7]])).toEqual([16, 16, 0]);
    expect(promotionOf([W(5, 4)], [[2, 3]], [], 4)).toEqual([16, 0, 0]);
  });

  scenario(
    190,
    191,
    192,
  )("takes both tiers into account", () => {
    expect(promotionOf([F(4), M(4)], [upTo(8), [3]], [[], []])).toEqual([16, 32, 32]);
    expect(promotionOf([F(4), M(4)], [[], []], [upTo(8), [3]])).toEqual([16, 32, 32]);
    expect(promotionOf([F(4), M(4)], [upTo(8), [3]], [upTo(8), [7]])).toEqual([32, 32, 0]);
  });
});

describe("matching over two tiers", () => {
  /** Device floor of `floor` pages, these pages on Host; tokens and shapes behind the floor. */
  const extended = (groups: Groups, floor: number, host: number[][], keys: number, P = 2) => {
    const d = new CacheDriver({ P, pool: 64, host: 64, groups });
    const prompt = d.prompt(keys);
    for (const group of groups.keys()) d.cachePages(group, prompt, upTo(floor));
    for (const [group, pages] of host.entries()) d.cachePages(group, prompt, pages, "host");
    const probe = d.probe(prompt, keys);
    return {
      d,
      prompt,
      probe,
      seen: [probe.hostTokens, ...groups.map((_, g) => d.shapeOf(probe, g, "host"))],
    };
  };
  const fw = [F(2), W(4, 2)];

  scenario(
    198,
    199,
    200,
    201,
  )("extends the device's boundary by what Host has for all groups", () => {
    expect(
      extended(
        fw,
        1,
        [
          [1, 2, 3],
          [2, 3],
        ],
        4,
      ).seen,
    ).toEqual([8, [1, 1, 1], [0, 1, 1]]);
    expect(
      extended(
        fw,
        1,
        [
          [1, 2, 3],
          [1, 2],
        ],
        4,
      ).seen,
    ).toEqual([6, [1, 1], [1, 1]]);
    expect(
      extended(
        fw,
        1,
        [
          [1, 3],
          [1, 2, 3],
        ],
        4,
      ).seen,
    ).toEqual([4, [1], [1]]);
    expect(
      extended(
        fw,
        2,
        [
          [0, 1],
          [0, 1],
        ],
        4,
      ).seen,
    ).toEqual([4, [], []]);
  });

  scenario(
    203,
    204,
    205,
  )("converges as it does on the device", () => {
    const deep = [F(4), W(10, 4), W(10, 4)];
    const cascade = extended(deep, 0, [upTo(8), [0, 1, 2, 4, 5, 6], [0, 1, 3, 4, 5]], 8, 4);
    expect(cascade.seen).toEqual([8, [1, 1], [1, 1], [1, 1]]);
    const three = [F(2), W(6, 2), W(2, 2)];
    expect(extended(three, 1, [[1, 2, 3, 4], [2, 3, 4], [4]], 5).seen).toEqual([
      10,
      [1, 1, 1, 1],
      [0, 1, 1, 1],
      [0, 0, 0, 1],
    ]);
    expect(extended(three, 1, [[1, 2, 3, 4], [2, 3, 4], [3]], 5).seen).toEqual([2, [], [], []]);
  });

  scenario(202)("pins what it takes until the load is over", () => {
    const d = new CacheDriver({ P: 2, pool: 16, host: 6, groups: fw });
    const prompt = d.prompt(4);
    d.cachePages(0, prompt, [0]);
    d.cachePages(1, prompt, [0]);
    d.cachePages(0, prompt, [1, 2, 3], "host");
    d.cachePages(1, prompt, [2, 3], "host");
    d.admit(d.tables(), 0, { probe: d.probe(prompt, 4), prompt });
    expect(d.hostEmpty).toBe(1);
    const granted = d.coordinator.tier?.hostAllocator.acquire([0, 0]) ?? [];
    expect(granted.map((block) => block > 0)).toEqual([true, false]);
    d.coordinator.tier?.loadBackDone(d.coordinator.result.loadBack?.opId ?? -1, true);
    expect([0, 1].map((group) => d.hostIndex(group).numIdle)).toEqual([3, 2]);
  });

  scenario(197)("keeps the holes of a window that needs nothing", () => {
    const { d, probe, prompt } = extended([F(2), W(1, 2)], 0, [[0, 1, 2], []], 3);
    const tables = d.tables();
    d.admit(tables, 0, { probe, prompt });
    expect([d.coordinator.result.hostTokens, d.coordinator.result.loadBack?.numTransfers]).toEqual([6, 3]);
    expect([blocksOf(tables[0]).includes(0), blocksOf(tables[1])]).toEqual([false, [0, 0, 0]]);
  });

  scenario(501)("counts what storage holds only where that was asked for", () => {
    const d = new CacheDriver({ P: 4, pool: 4, host: 4, l3: true, groups: [F(4)] });
    const prompt = d.prompt(1);
    expect(d.probe(prompt, 1).hostTokens).toBe(0);
    d.coordinator.storageKeys?.add(0, prompt.chain.words, 0, 0);
    expect(d.probe(prompt, 1).hostTokens).toBe(4);
    const without = new CacheDriver({ P: 4, pool: 4, host: 4, groups: [F(4)] });
    expect(without.coordinator.storageKeys).toBeUndefined();
  });
});

describe("state groups in a probe", () => {
  scenario(
    206,
    208,
    209,
  )("are hit by one snapshot with holes in front", () => {
    expect(probed([W(5, 4)], [[0, 1, 3]], 4).shapes).toEqual([[0, 0, 0, 1]]);
    const hybrid = probed([F(4), W(8, 4), W(5, 4)], [upTo(4), [2, 3], [3]], 4);
    expect([hybrid.common, ...hybrid.shapes.map(hits)]).toEqual([16, 4, 2, 1]);
    expect(hybrid.d.admit(hybrid.d.tables(), 4, { probe: hybrid.probe, prompt: hybrid.prompt })).toBe(
      "admitted",
    );
    expect(probed([F(4), M(4)], [upTo(3), [2]], 3)).toMatchObject({
      common: 12,
      shapes: [
        [1, 1, 1],
        [0, 0, 1],
      ],
    });
  });

  scenario(207, 210)("keep the last snapshot only", () => {
    const d = new CacheDriver({ P: 4, pool: 8, groups: [M(4)] });
    const tables = d.tables();
    d.admit(tables, 16);
    d.admit(tables, 0, { epoch: 1, c: 16 });
    expect(blocksOf(tables[0]).map((block) => Number(block !== 0))).toEqual([0, 0, 0, 1]);
    expect(d.empty).toBe(7);
  });
});

describe("replayable groups in a probe", () => {
  scenario(515, 516)("neither bound it nor claim a hit, and start a suffix of their own", () => {
    const d = new CacheDriver({ P: 4, pool: 32, groups: [F(4), R(8, 4)] });
    expect(d.coordinator.replayWindowTokens).toBe(8);
    const prompt = d.prompt(4);
    d.cachePages(0, prompt, upTo(3));
    const three = d.probe(prompt, 4);
    expect([three.deviceTokens, three.closedTokens, d.shapeOf(three, 1), three.promotionBoundary]).toEqual([
      12,
      12,
      [],
      0,
    ]);
    d.cachePages(0, prompt, [3]);
    const tables = d.tables();
    d.admit(tables, 6, { probe: d.probe(prompt, 4), prompt });
    expect(tables[0].length).toBe(6);
    expect(blocksOf(tables[1]).map((block) => Number(block !== 0))).toEqual([0, 0, 1, 1, 1, 1]);
    expect([tables[1].reclaimedBlocks, tables[1].availableTokens, d.index(1).numEntries]).toEqual([2, 2, 0]);
  });

  scenario(517)("are never published, stored or counted as resident", () => {
    const d = new CacheDriver({ P: 4, pool: 32, host: 32, streams: true, groups: [F(4), R(8, 4)] });
    const prompt = d.prompt(2);
    const tables = d.tables();
    d.admit(tables, 8, { prompt });
    for (const kind of [chunk, endpoint, 2] as const) {
      d.publish(tables, { prompt, to: 2, kind, streams: true }, 8, 1);
    }
    expect(d.index(1).numEntries).toBe(0);
    expect(d.coordinator.tier?.pendingStores().map(({ group }) => group)).toEqual([0, 0]);
    expect(deviceBoundaryResidency(d.coordinator, prompt.chain.words, 0)).toBe("complete");
  });
});
