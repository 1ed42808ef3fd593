/** Groups of one kind and of several over one pool. */
import { describe, expect } from "bun:test";
import { numAvailableLcmBlocks } from "../../src/cache/coordinator/capacity-views";
import { blocksOf, CacheDriver, chunk, F, W } from "../cache/cache-driver";
import { Random } from "../sim/random";
import { scenario } from "./scenario";

const full = (pool = 8, K = 1) => new CacheDriver({ P: 4, pool, groups: [F(4, K)] });
const sliding = (w: number, pool = 8, g = 4) => new CacheDriver({ P: g, pool, groups: [W(w, g)] });

/** Admits fresh tokens into new tables. */
function fresh(d: CacheDriver, tokens: number, reserve = 0) {
  const tables = d.tables();
  expect(d.admit(tables, tokens, { reserve })).toBe("admitted");
  return tables;
}

describe("a full-history group", () => {
  scenario(45, 239)("begins with an empty table and fills it a block at a time", () => {
    const d = full();
    const [table] = d.tables();
    expect([table.length, table.availableTokens]).toEqual([0, 0]);
    expect(fresh(d, 4)[0].length).toBe(1);
  });

  scenario(
    46,
    47,
    48,
  )("matches nothing where nothing is cached, and pins nothing by looking", () => {
    const d = full();
    const prompt = d.prompt(2);
    expect([d.probe(prompt, 0).deviceTokens, d.probe(prompt, 2).deviceTokens]).toEqual([0, 0]);
    expect(d.empty).toBe(8);
  });

  scenario(49, 50)("pins a hit for as long as the table that claimed it lives", () => {
    const d = full();
    const prompt = d.prompt(1);
    const block = d.cache(0, prompt, 0);
    expect([d.index().refs.ownersOf(block), d.empty]).toEqual([1, 7]);
    const tables = d.tables();
    expect(d.admit(tables, 0, { probe: d.probe(prompt, 1), prompt })).toBe("admitted");
    expect([d.index().refs.ownersOf(block), tables[0].length, tables[0].availableTokens]).toEqual([2, 1, 0]);
    d.free(tables);
    expect([d.index().refs.ownersOf(block), d.empty]).toEqual([1, 7]);
  });

  scenario(51, 65)("takes nothing for a claim of nothing", () => {
    const d = full();
    const prompt = d.prompt(1);
    const tables = d.tables();
    d.admit(tables, 0, { probe: d.probe(prompt, 1), prompt });
    expect([tables[0].length, d.empty]).toEqual([0, 8]);
  });

  scenario(
    52,
    53,
    55,
    56,
  )("uses up a block's room before it takes another", () => {
    const d = full();
    const tables = fresh(d, 4);
    expect([tables[0].length, tables[0].availableTokens, d.empty]).toEqual([1, 0, 7]);
    const partial = fresh(d, 3);
    expect([partial[0].length, partial[0].availableTokens]).toEqual([1, 1]);
    d.admit(partial, 1, { epoch: 1 });
    expect([partial[0].length, partial[0].availableTokens, d.empty]).toEqual([1, 0, 6]);
    const spilling = fresh(d, 2);
    d.admit(spilling, 7, { epoch: 1 });
    expect([spilling[0].length, spilling[0].availableTokens]).toEqual([3, 3]);
  });

  scenario(54, 152)("reserves room that lives in the table until it is used", () => {
    const d = full();
    const tables = fresh(d, 1, 8);
    expect([tables[0].length, tables[0].availableTokens, d.empty]).toEqual([3, 11, 5]);
    tables[0].availableTokens -= 8;
    expect([tables[0].availableTokens, d.empty]).toEqual([3, 5]);
  });

  scenario(57)("takes all of a demand or none of it", () => {
    const d = full(2);
    const tables = d.tables();
    expect(d.admit(tables, 12)).toBe("short");
    expect([tables[0].length, d.empty]).toEqual([0, 2]);
  });

  scenario(
    58,
    59,
    60,
  )("publishes full blocks once, and no unfinished one", () => {
    const d = full();
    const prompt = d.prompt(2);
    const tables = fresh(d, 6);
    d.publish(tables, { prompt, to: 1 }, 6, 1);
    expect([d.isCached(0, prompt, 0), d.isCached(0, prompt, 1)]).toEqual([true, false]);
    d.admit(tables, 2, { epoch: 1 });
    d.publish(tables, { prompt, to: 2 }, 8, 1);
    expect([d.probe(prompt, 2).deviceTokens, d.index().numEntries]).toEqual([8, 2]);
    expect(Array.from(d.coordinator.probe.device[0].slots.subarray(0, 2))).toEqual(blocksOf(tables[0]));
  });

  scenario(61, 62)("keeps published blocks reusable when the table is freed", () => {
    const d = full();
    const prompt = d.prompt(1);
    const tables = fresh(d, 8);
    expect(d.empty).toBe(6);
    d.publish(tables, { prompt, to: 1 }, 8, 1);
    d.free(tables);
    expect([d.empty, numAvailableLcmBlocks(d.coordinator), tables[0].length]).toEqual([7, 8, 0]);
    expect(d.probe(prompt, 1).deviceTokens).toBe(4);
  });

  scenario(63)("lets a second request share all of the first one's prefix", () => {
    const d = full(16);
    const prompt = d.prompt(2);
    const first = fresh(d, 8);
    d.publish(first, { prompt, to: 2 }, 8, 1);
    d.free(first);
    const before = d.empty;
    const second = d.tables();
    d.admit(second, 0, { probe: d.probe(prompt, 2), prompt });
    expect([second[0].length, d.empty]).toEqual([2, before]);
  });

  scenario(64)("knows its own keys only", () => {
    const d = new CacheDriver({ P: 4, pool: 8, groups: [F(4), F(4)] });
    const prompt = d.prompt(1);
    d.cache(1, prompt, 0);
    expect([d.isCached(0, prompt, 0), d.isCached(1, prompt, 0)]).toEqual([false, true]);
    expect(d.probe(prompt, 1).deviceTokens).toBe(0);
  });

  scenario(66)("does not claim into a table that has blocks", () => {
    const d = full();
    const prompt = d.prompt(1);
    d.cache(0, prompt, 0);
    const tables = fresh(d, 4);
    expect(() => d.admit(tables, 0, { probe: d.probe(prompt, 1), prompt })).toThrow("empty table");
  });

  scenario(67)("tells equal pages behind different prefixes apart", () => {
    const d = full();
    const [a, b] = [d.prompt(2), d.prompt(2)];
    expect(a.chain.words.slice(8, 16)).not.toEqual(b.chain.words.slice(8, 16));
    d.cachePages(0, a, [0, 1]);
    expect([d.probe(b, 2).deviceTokens, d.probe(a, 2).deviceTokens]).toEqual([0, 8]);
  });

  scenario(68, 69)("can evict what only the cache owns, and nothing that was never published", () => {
    const d = full(1, 2);
    const prompt = d.prompt(1);
    const tables = fresh(d, 4);
    expect(d.index().numIdle).toBe(0);
    d.publish(tables, { prompt, to: 1 }, 4, 1);
    const [block] = blocksOf(tables[0]);
    d.free(tables);
    expect([d.coordinator.device.pool.isOccupied(0, block), d.index().numIdle]).toEqual([true, 1]);
  });

  scenario(70, 72)(
    "evicts a child and leaves its sibling where it is, until the parent is free for others",
    () => {
      const d = new CacheDriver({ P: 4, pool: 1, groups: [F(4, 2), F(4, 8)] });
      const prompt = d.prompt(2);
      const [a, b] = d.cachePages(0, prompt, [0, 1]);
      const { pool } = d.coordinator.device;
      d.index().evict(a);
      expect([d.index().isCached(b), pool.isOccupied(0, b), pool.groupOf(1)]).toEqual([true, true, 0]);
      d.index().evict(b);
      expect(pool.groupOf(1)).toBe(-1);
      expect(d.index(1).refs.acquire()).toBe(1);
      expect(pool.groupOf(1)).toBe(1);
    },
  );

  scenario(71)("cannot give a whole parent away while one child is in use", () => {
    const d = full(1, 2);
    const prompt = d.prompt(2);
    const tables = fresh(d, 8);
    d.publish(tables, { prompt, to: 2 }, 8, 1);
    d.index().refs.retain(tables[0].at(0));
    const [held] = blocksOf(tables[0]);
    d.free(tables);
    expect(d.coordinator.device.census.isIdle(1)).toBe(false);
    d.index().refs.release(held);
    expect(d.coordinator.device.census.isIdle(1)).toBe(true);
  });

  scenario(73)("keeps namespaces apart, for a digest starts from its namespace", () => {
    const d = full();
    const [a, b] = [d.prompt(1), d.prompt(1)];
    const blocks = [d.cache(0, a, 0), d.cache(0, b, 0)];
    expect([d.index().numEntries, blocks[0] === blocks[1]]).toEqual([2, false]);
  });

  scenario(74)("evicts in one tier and leaves the other alone", () => {
    const d = new CacheDriver({ P: 4, pool: 1, host: 1, groups: [F(4)] });
    const [a, b] = [d.prompt(1), d.prompt(1)];
    d.index().evict(d.cache(0, a, 0));
    const onHost = d.cache(0, b, 0, { tier: "host" });
    expect([d.index().numEntries, d.hostIndex().isCached(onHost)]).toEqual([0, true]);
  });
});

describe("a sliding group", () => {
  const match = (w: number, cached: number[], keys: number, bound = keys) => {
    const d = sliding(w);
    const prompt = d.prompt(keys);
    d.cachePages(0, prompt, cached);
    return d.shapeOf(d.probe(prompt, bound), 0);
  };

  scenario(
    75,
    76,
    82,
    83,
  )("matches the rightmost window, looking from the end", () => {
    expect(sliding(10).tables()[0].length).toBe(0);
    expect(match(10, [], 2)).toEqual([]);
    expect(match(1, [0], 3)).toEqual([0, 0, 0]);
  });

  scenario(
    77,
    78,
    79,
    80,
  )("needs as many blocks as its window reads, or all that there are", () => {
    expect(match(10, [1, 2, 3], 5)).toEqual([0, 1, 1, 1]);
    expect(match(10, [2, 3, 4], 5, 5)).toEqual([0, 0, 1, 1, 1]);
    expect(match(10, [2, 3, 4], 5, 4)).toEqual([]);
    expect(match(4, [0, 2], 3)).toEqual([0, 0, 1]);
    expect(match(10, [0, 1], 2)).toEqual([1, 1]);
  });

  scenario(81)("does not make an entry younger by looking at it", () => {
    const d = sliding(10, 7);
    const prompt = d.prompt(5);
    const blocks = d.cachePages(0, prompt, [1, 2, 3]);
    const epochs = blocks.map((block) => d.index().epochOf(block));
    d.probe(prompt, 5);
    expect(blocks.map((block) => d.index().epochOf(block))).toEqual(epochs);
  });

  scenario(84)("claims holes as holes", () => {
    const d = sliding(10);
    const prompt = d.prompt(4);
    const blocks = d.cachePages(0, prompt, [1, 2, 3]);
    const tables = d.tables();
    d.admit(tables, 0, { probe: d.probe(prompt, 4), prompt });
    expect(blocksOf(tables[0])).toEqual([0, ...blocks]);
    expect(blocks.map((block) => d.index().refs.ownersOf(block))).toEqual([2, 2, 2]);
  });

  scenario(85, 86)("takes, publishes and frees like any other", () => {
    const d = sliding(4);
    const prompt = d.prompt(1);
    const tables = fresh(d, 4);
    d.publish(tables, { prompt, to: 1 }, 4, 1);
    d.free(tables);
    expect([d.shapeOf(d.probe(prompt, 1), 0), numAvailableLcmBlocks(d.coordinator)]).toEqual([[1], 8]);
  });

  /** Reclaims what a frontier expires, by an admission that takes nothing. */
  const reclaim = (d: CacheDriver, tables: ReturnType<typeof fresh>, c: number) =>
    d.admit(tables, 0, { epoch: 1, c });

  scenario(
    87,
    88,
    89,
    90,
    338,
  )("drops what has slid out, once, and keeps the table's length", () => {
    const d = sliding(16);
    const inside = fresh(d, 8);
    reclaim(d, inside, 8);
    expect(blocksOf(inside[0])).not.toContain(0);
    const e = sliding(4);
    const tables = fresh(e, 8);
    reclaim(e, tables, 1000);
    expect([blocksOf(tables[0]), e.empty]).toEqual([[0, 0], 8]);
    reclaim(e, tables, 1000);
    expect([tables[0].length, e.empty]).toEqual([2, 8]);
    const f = sliding(4, 8, 2);
    const stepped = fresh(f, 8);
    const shapes = [5, 6, 7].map((c) => {
      reclaim(f, stepped, c);
      return blocksOf(stepped[0]).map((block) => Number(block !== 0));
    });
    expect(shapes).toEqual([
      [0, 1, 1, 1],
      [0, 1, 1, 1],
      [0, 0, 1, 1],
    ]);
  });

  scenario(91)("makes room with every block that it drops", () => {
    const d = sliding(4, 4, 2);
    const tables = fresh(d, 8);
    reclaim(d, tables, 8);
    expect([blocksOf(tables[0]).slice(0, 2), d.empty]).toEqual([[0, 0], 2]);
    expect(d.admit(tables, 4, { epoch: 1, c: 8 })).toBe("admitted");
  });

  scenario(92)("keeps what it drops reusable when it was published", () => {
    const d = sliding(4, 4, 2);
    const prompt = d.prompt(1);
    const tables = fresh(d, 8);
    const [first] = blocksOf(tables[0]);
    d.publish(tables, { prompt, to: 1 }, 2, 1);
    reclaim(d, tables, 8);
    expect(tables[0].at(0)).toBe(0);
    expect(d.probe(prompt, 1).device[0].slots[0]).toBe(first);
  });

  scenario(93)("cannot count on a block that a transfer still holds", () => {
    const d = sliding(4, 2);
    const prompt = d.prompt(1);
    const tables = fresh(d, 8);
    d.publish(tables, { prompt, to: 1 }, 4, 1);
    const [block] = blocksOf(tables[0]);
    d.index().refs.retain(block);
    expect(d.admit(tables, 4, { epoch: 1, c: 7 })).toBe("short");
    d.index().refs.release(block);
    expect(d.admit(tables, 4, { epoch: 1, c: 7 })).toBe("admitted");
  });

  scenario(94)("does not change a table's room by dropping blocks", () => {
    const d = sliding(4);
    const tables = fresh(d, 10);
    reclaim(d, tables, 10);
    expect([tables[0].at(0), tables[0].availableTokens]).toEqual([0, 2]);
  });

  scenario(95)("stays within its window over any number of steps", () => {
    const d = sliding(4, 4, 2);
    const tables = fresh(d, 2);
    for (let c = 2; c < 42; c += 2) {
      d.admit(tables, 2, { epoch: 1, c });
      expect(blocksOf(tables[0]).filter((block) => block !== 0).length).toBeLessThanOrEqual(3);
    }
    expect(tables[0].length).toBeGreaterThan(3);
  });
});

describe("groups together", () => {
  scenario(96)("each support the boundary that they agree on, whatever was cached and evicted", () => {
    const random = new Random(20260807);
    const d = new CacheDriver({ P: 4, pool: 64, groups: [F(4), W(8, 4)] });
    const prompt = d.prompt(12);
    for (let round = 0; round < 200; round++) {
      for (const group of [0, 1]) {
        const skip = group === 0 ? 0 : random.int(0, 3);
        for (let page = skip; page < random.int(skip, 12); page++) {
          if (!d.isCached(group, prompt, page)) d.cache(group, prompt, page);
        }
        for (let page = 0; page < 12; page++) {
          if (!random.chance(0.2) || !d.isCached(group, prompt, page)) continue;
          d.index(group).evict(d.index(group).find(prompt.chain.words, page * 8, 0));
        }
      }
      const common = d.probe(prompt, 12).deviceTokens / 4;
      expect(common).toBeLessThanOrEqual(12);
      for (let page = 0; page < common; page++) expect(d.isCached(0, prompt, page)).toBe(true);
      for (let page = Math.max(0, common - 2); page < common; page++) {
        expect(d.isCached(1, prompt, page)).toBe(true);
      }
    }
  });
});

describe("matching on Host behind a floor", () => {
  /** Host's part of a probe whose device part covers `floor` pages. */
  const hostMatch = (group: ReturnType<typeof F>, cached: number[], keys: number, floor: number) => {
    const d = new CacheDriver({ P: 4, pool: 16, host: 16, groups: [group] });
    const prompt = d.prompt(keys);
    d.cachePages(
      0,
      prompt,
      Array.from({ length: floor }, (_, page) => page),
    );
    d.cachePages(0, prompt, cached, "host");
    const probe = d.probe(prompt, keys);
    return [probe.hostTokens / 4, d.shapeOf(probe, 0, "host")];
  };

  scenario(
    97,
    98,
    99,
  )("of full history walks from the floor to the first miss", () => {
    expect(hostMatch(F(4), [1, 2, 3, 4], 5, 1)).toEqual([5, [1, 1, 1, 1]]);
    expect(hostMatch(F(4), [0, 1, 3], 4, 0)).toEqual([2, [1, 1]]);
    expect(hostMatch(F(4), [1], 2, 0)).toEqual([0, []]);
    expect(hostMatch(F(4), [], 2, 2)).toEqual([2, []]);
  });

  scenario(
    100,
    101,
    102,
  )("of a window finds the rightmost run that suffices", () => {
    expect(hostMatch(W(10, 4), [2, 3, 4], 5, 0)).toEqual([5, [0, 0, 1, 1, 1]]);
    expect(hostMatch(W(10, 4), [1, 2, 3], 5, 0)).toEqual([4, [0, 1, 1, 1]]);
    expect(hostMatch(W(10, 4), [0, 1], 2, 0)).toEqual([2, [1, 1]]);
  });

  scenario(103, 104)("of a window above a floor bottoms out there", () => {
    expect(hostMatch(W(9, 4), [3, 4, 5], 7, 3)).toEqual([6, [0, 1, 1]]);
    expect(hostMatch(W(9, 4), [], 5, 1)).toEqual([1, []]);
  });
});

describe("kinds", () => {
  scenario(221)("of boundaries are only ever raised", () => {
    const d = full();
    const prompt = d.prompt(1);
    const block = d.cache(0, prompt, 0, { held: true });
    const kinds = [chunk, 2, chunk].map((kind) => {
      d.index().register(block, prompt.chain.words, 0, 0, kind as 0 | 2, 1, 0);
      return d.index().kindOf(block);
    });
    expect(kinds).toEqual([0, 2, 2]);
  });
});
