/** Which cached blocks go when room is short, and in which order blocks are taken. */
import { describe, expect } from "bun:test";
import { blocksOf, CacheDriver, chunk, endpoint, F, M, promoted, W } from "../cache/cache-driver";
import { scenario } from "./scenario";

const cacheOf = (pool: number, ...groups: ConstructorParameters<typeof CacheDriver>[0]["groups"]) =>
  new CacheDriver({ P: 4, pool, groups });
const full = (pool: number, K = 1) => cacheOf(pool, F(4, K));

/** Admits fresh tokens, publishes these pages and frees: what is left is only cached. */
function cachedRequest(d: CacheDriver, pages: number) {
  const prompt = d.prompt(pages);
  const tables = d.tables();
  expect(d.admit(tables, pages * 4, { prompt })).toBe("admitted");
  d.publish(tables, { prompt, to: pages }, pages * 4, d.coordinator.result.epoch);
  d.free(tables);
  return prompt;
}

describe("taking blocks", () => {
  scenario(143)("reports exactly the fresh ones", () => {
    const d = cacheOf(4, F(4, 4), M(4));
    const tables = d.tables();
    const fresh = () =>
      d.coordinator.result.fresh.map(({ items, length }) => Array.from(items.subarray(0, length)));
    d.admit(tables, [5, 1]);
    expect(fresh()).toEqual(tables.map(blocksOf));
    d.admit(tables, [1, 1], { epoch: 1 });
    expect(fresh()).toEqual([[], []]);
  });

  scenario(149, 150)("opens empty parents in the order in which they were freed, and packs them", () => {
    const d = full(3);
    const held = d.tables();
    d.admit(held, 12);
    const [first, , third] = blocksOf(held[0]);
    const { refs } = d.coordinator.groups[0].allocator;
    refs.release(third);
    refs.release(first);
    const tables = d.tables();
    d.admit(tables, 8);
    expect(blocksOf(tables[0])).toEqual([third, first]);
    const packed = full(2, 2);
    const two = packed.tables();
    packed.admit(two, 16);
    for (const block of [blocksOf(two[0])[2], blocksOf(two[0])[3], ...blocksOf(two[0]).slice(0, 2)]) {
      packed.coordinator.groups[0].allocator.refs.release(block);
    }
    const next = packed.tables();
    packed.admit(next, 8);
    expect(packed.parents(next[0])).toEqual([2, 2]);
  });

  scenario(151)("costs nothing for a cached hit", () => {
    const d = full(2);
    const prompt = d.prompt(1);
    const block = d.cache(0, prompt, 0);
    const tables = d.tables();
    d.admit(tables, 4, { probe: d.probe(prompt, 1), prompt });
    expect([tables[0].length, tables[0].at(0), d.empty]).toEqual([2, block, 0]);
  });

  scenario(
    153,
    154,
    155,
  )("packs a demand before it evicts, and evicts before it fails", () => {
    const d = cacheOf(2, F(4, 2), F(4, 2));
    d.cache(0, d.prompt(1), 0);
    const tables = d.tables();
    expect(d.admit(tables, [8, 4])).toBe("admitted");
    expect(new Set(d.parents(tables[0])).size).toBe(1);
    expect(d.parents(tables[0])).not.toContain(d.parents(tables[1], 1)[0]);
    expect(d.index(0).numEntries).toBe(0);
    const partial = () => {
      const e = cacheOf(3, F(4, 2), F(4));
      const kept = [e.prompt(1), e.prompt(1)];
      const { refs } = e.coordinator.groups[0].allocator;
      const fillers = kept.map((prompt) => {
        e.cache(0, prompt, 0);
        return refs.acquire();
      });
      for (const block of fillers) refs.release(block);
      return e;
    };
    const both = partial();
    const spread = both.tables();
    expect(both.index(0).numEntries).toBe(2);
    expect(both.admit(spread, [8, 8])).toBe("admitted");
    expect(new Set(both.parents(spread[0])).size).toBe(1);
    const alone = partial();
    alone.admit(alone.tables(), [8, 0]);
    expect(alone.index(0).numEntries).toBe(2);
  });

  scenario(156, 157)("prefers an empty parent to eviction, and cannot use another group's slots", () => {
    const d = full(2, 2);
    const prompt = d.prompt(1);
    d.cache(0, prompt, 0);
    const tables = d.tables();
    d.admit(tables, 8);
    expect([d.isCached(0, prompt, 0), tables[0].length]).toEqual([true, 2]);
    const e = cacheOf(1, F(4, 2), F(4, 2));
    e.admit(e.tables(), [4, 0]);
    const refused = e.tables();
    expect(e.admit(refused, [0, 4])).toBe("short");
    expect([e.coordinator.device.pool.groupOf(1), refused[1].length]).toEqual([0, 0]);
  });

  scenario(
    175,
    176,
    177,
    178,
    179,
    180,
    181,
    232,
  )("keeps groups in step and returns everything", () => {
    const d = cacheOf(16, F(4), W(10, 4));
    const tables = d.tables();
    d.admit(tables, 4);
    d.admit(tables, 4, { epoch: 1 });
    expect(tables.map((table) => table.length)).toEqual([2, 2]);
    d.free(tables);
    expect(d.empty).toBe(16);
    const short = cacheOf(3, F(4), W(4, 4));
    const refused = short.tables();
    expect([short.admit(refused, 8), refused.map((table) => table.length), short.empty]).toEqual([
      "short",
      [0, 0],
      3,
    ]);
    const shared = cacheOf(16, F(4), W(4, 4));
    const prompt = cachedRequest(shared, 1);
    const claimed = shared.tables();
    shared.admit(claimed, 4, { probe: shared.probe(prompt, 1), prompt });
    expect([shared.coordinator.result.deviceTokens, claimed.map((table) => table.length)]).toEqual([
      4,
      [2, 2],
    ]);
    const two = cachedRequest(shared, 2);
    const again = shared.tables();
    shared.admit(again, 0, { probe: shared.probe(two, 2), prompt: two });
    expect(again.map((table) => table.length)).toEqual([2, 2]);
  });
});

describe("access epochs", () => {
  scenario(144, 145)("move with admissions alone, and a hit takes its request's", () => {
    const d = full(8);
    const prompt = cachedRequest(d, 4);
    d.admit(d.tables(), 0, { probe: d.probe(prompt, 4), prompt });
    const epochs = [0, 1, 2, 3].map((page) =>
      d.index().epochOf(d.index().find(prompt.chain.words, page * 8, 0)),
    );
    expect(new Set(epochs)).toEqual(new Set([2]));
    const one = full(1);
    const held = one.tables();
    const owner = one.prompt(1);
    one.admit(held, 4, { prompt: owner });
    one.publish(held, { prompt: owner, to: 1 }, 4, 1);
    one.probe(owner, 1);
    expect(one.admit(one.tables(), 4)).toBe("short");
    one.free(held);
    one.admit(one.tables(), 0, { probe: one.probe(owner, 1), prompt: owner });
    expect(one.coordinator.result.epoch).toBe(2);
  });

  scenario(148)("stay as they are when a hit could not be admitted", () => {
    const d = full(2);
    const prompt = d.prompt(1);
    const block = d.cache(0, prompt, 0);
    const epoch = d.index().epochOf(block);
    d.admit(d.tables(), 4);
    for (let attempt = 0; attempt < 2; attempt++) {
      expect(d.admit(d.tables(), 4, { probe: d.probe(prompt, 1), prompt })).toBe("short");
    }
    expect([d.index().epochOf(block), d.index().wasAcquired(block), d.index().isIdle(block)]).toEqual([
      epoch,
      false,
      true,
    ]);
  });
});

describe("which entries go", () => {
  scenario(
    146,
    147,
    158,
  )("are the oldest request's first, and of one request the deepest", () => {
    const d = full(4);
    const [a, b] = [cachedRequest(d, 1), cachedRequest(d, 3)];
    d.admit(d.tables(), 4);
    expect([d.isCached(0, a, 0), ...[0, 1, 2].map((page) => d.isCached(0, b, page))]).toEqual([
      false,
      true,
      true,
      true,
    ]);
    const e = full(4);
    const one = cachedRequest(e, 4);
    e.admit(e.tables(), 4);
    expect([0, 1, 2, 3].map((page) => e.isCached(0, one, page))).toEqual([true, true, true, false]);
    const packed = full(1, 2);
    const [older, newer] = [packed.prompt(1), packed.prompt(1)];
    packed.cache(0, older, 0);
    packed.cache(0, newer, 0);
    packed.admit(packed.tables(), 4);
    expect([packed.isCached(0, older, 0), packed.isCached(0, newer, 0)]).toEqual([false, true]);
  });

  scenario(159)("are judged by their last use, not by having been used once", () => {
    const d = full(2);
    const a = cachedRequest(d, 1);
    const tables = d.tables();
    d.admit(tables, 0, { probe: d.probe(a, 1), prompt: a });
    d.free(tables);
    const b = cachedRequest(d, 1);
    d.admit(d.tables(), 4);
    expect([d.isCached(0, a, 0), d.isCached(0, b, 0)]).toEqual([false, true]);
  });

  type Entry = { epoch: number; index: number; kind?: 0 | 1 | 2; hit?: boolean };
  /** Which of two entries of one group survives when one block is needed. */
  const survivor = (group: ReturnType<typeof F>, one: Entry, two: Entry) => {
    const d = cacheOf(2, group);
    const prompts = [one, two].map(({ epoch, index, kind, hit }) => {
      const prompt = d.prompt(1);
      while (d.coordinator.issueEpoch() < epoch);
      const block = d.cache(0, prompt, 0, { epoch, index, kind: kind ?? chunk });
      if (hit === true) {
        d.index().acquireMatched(block, epoch);
        d.index().refs.release(block);
      }
      return prompt;
    });
    d.admit(d.tables(), 1);
    return prompts.findIndex((prompt) => d.isCached(0, prompt, 0)) + 1;
  };

  scenario(160, 161)("of open groups are the oldest, and among unhit chunks the shallowest", () => {
    expect(survivor(M(4), { epoch: 1, index: 10 }, { epoch: 2, index: 0 })).toBe(2);
    expect(survivor(W(8, 4), { epoch: 1, index: 7 }, { epoch: 2, index: 0 })).toBe(2);
    expect(survivor(W(8, 4), { epoch: 2, index: 7 }, { epoch: 2, index: 0 })).toBe(1);
  });

  scenario(
    162,
    163,
    164,
    165,
  )("are chunks before prompts' ends within an epoch, until a hit establishes them", () => {
    expect(survivor(M(4), { epoch: 7, index: 2, kind: endpoint }, { epoch: 7, index: 6 })).toBe(1);
    expect(survivor(M(4), { epoch: 7, index: 2, kind: promoted }, { epoch: 7, index: 6 })).toBe(1);
    expect(survivor(M(4), { epoch: 7, index: 2, hit: true }, { epoch: 7, index: 6 })).toBe(1);
    expect(survivor(M(4), { epoch: 7, index: 2, hit: true }, { epoch: 8, index: 6, kind: endpoint })).toBe(2);
  });

  scenario(506)("are ordered by epoch before class", () => {
    expect(survivor(W(8, 4), { epoch: 1, index: 2, kind: endpoint }, { epoch: 2, index: 6 })).toBe(2);
  });

  scenario(166, 507)("are an open group's before full history of the same epoch", () => {
    const d = cacheOf(3, F(4), M(4), F(4));
    const prompt = d.prompt(1);
    while (d.coordinator.issueEpoch() < 7);
    d.cache(0, prompt, 0, { epoch: 7, index: 1 });
    d.cache(1, prompt, 0, { epoch: 7, index: 3, kind: endpoint });
    d.cache(2, prompt, 0, { epoch: 7, index: 9 });
    d.admit(d.tables(), [4, 0, 0]);
    expect([0, 1, 2].map((group) => d.isCached(group, prompt, 0))).toEqual([true, false, true]);
    const e = cacheOf(2, F(4), W(8, 4));
    const old = e.prompt(1);
    e.cache(0, old, 0, { epoch: e.coordinator.issueEpoch() });
    e.cache(1, old, 0, { epoch: e.coordinator.issueEpoch(), kind: endpoint });
    e.admit(e.tables(), [1, 0]);
    expect([e.isCached(0, old, 0), e.isCached(1, old, 0)]).toEqual([false, true]);
  });

  scenario(167)("are none when the request's own expired block will do", () => {
    const d = cacheOf(3, M(4));
    const prompt = d.prompt(1);
    d.cache(0, prompt, 0);
    const tables = d.tables();
    d.admit(tables, 8);
    expect(d.admit(tables, 4, { epoch: d.coordinator.issueEpoch(), c: 8 })).toBe("admitted");
    expect([tables[0].at(0), d.isCached(0, prompt, 0)]).toEqual([0, true]);
  });

  scenario(169, 170)("are as few as do, siblings of a freed parent included", () => {
    const d = full(2, 2);
    const [h01, h2] = [d.prompt(2), d.prompt(1)];
    d.cachePages(0, h01, [0, 1]);
    d.cache(0, h2, 0);
    const tables = d.tables();
    d.admit(tables, 12);
    expect([d.isCached(0, h01, 0), d.isCached(0, h01, 1), d.isCached(0, h2, 0)]).toEqual([
      false,
      false,
      true,
    ]);
    expect(d.parents(tables[0])).toEqual([2, 1, 1]);
    const e = cacheOf(2, F(4, 2), F(4));
    const prompts = [1, 3, 2].map(() => e.prompt(1));
    while (e.coordinator.issueEpoch() < 3);
    e.cache(0, prompts[0], 0, { epoch: 1 });
    e.cache(0, prompts[1], 0, { epoch: 3 });
    e.cache(0, prompts[2], 0, { epoch: 2 });
    e.admit(e.tables(), [0, 4]);
    expect(prompts.map((prompt) => e.isCached(0, prompt, 0))).toEqual([true, true, false]);
  });

  scenario(171)("are never what the admission itself hits", () => {
    const d = cacheOf(2, F(4, 2), F(4));
    const prompt = d.prompt(2);
    d.cachePages(0, prompt, [0, 1]);
    d.cachePages(1, prompt, [0]);
    const before = d.coordinator.device.pool.emptyParents();
    expect(d.admit(d.tables(), [0, 4], { probe: d.probe(prompt, 1), prompt })).toBe("short");
    expect([d.index(0).numEntries, d.index(1).numEntries, d.index(0).numIdle]).toEqual([2, 1, 2]);
    expect(d.coordinator.device.pool.emptyParents()).toEqual(before);
  });

  scenario(505)("skip a protected epoch and go on with later ones", () => {
    const d = full(3);
    const prompt = d.prompt(3);
    for (const page of [0, 1, 2]) d.cache(0, prompt, page);
    const tables = d.tables();
    d.admit(tables, 8, { probe: d.probe(prompt, 1), prompt });
    expect([0, 1, 2].map((page) => d.isCached(0, prompt, page))).toEqual([true, false, false]);
    expect(tables[0].length).toBe(3);
  });
});

describe("a request's own expired blocks", () => {
  /** Two pages of a window that reads one block, both at c = 8 half expired. */
  const window = (publishes: boolean) => {
    const d = cacheOf(2, W(5, 4));
    const prompt = d.prompt(2);
    const tables = d.tables();
    d.admit(tables, 8, { prompt });
    if (publishes) d.publish(tables, { prompt, to: 2 }, 8, 1);
    return { d, prompt, tables, first: tables[0].at(0) };
  };

  scenario(172)("give way when they are cached, once the table has let go", () => {
    const d = cacheOf(2, W(5, 4));
    const prompt = d.prompt(2);
    const tables = d.tables();
    d.admit(tables, 8, { prompt });
    for (const page of [0, 1]) {
      d.index().register(tables[0].at(page), prompt.chain.words, page * 8, 0, chunk, 1, page);
    }
    const first = tables[0].at(0);
    expect(d.admit(tables, 4, { epoch: 1, c: 8 })).toBe("admitted");
    expect([tables[0].at(0), tables[0].at(2)]).toEqual([0, first]);
  });

  scenario(173)("give way even when this very admission publishes them", () => {
    const { d, prompt, tables, first } = window(false);
    expect(d.admit(tables, 4, { epoch: 1, c: 8, publish: { prompt, to: 2 } })).toBe("admitted");
    expect([d.isCached(0, prompt, 0), d.isCached(0, prompt, 1), tables[0].at(2)]).toEqual([
      false,
      true,
      first,
    ]);
  });

  scenario(174)("do not count while somebody else holds them", () => {
    const { d, tables, first } = window(false);
    d.index().refs.retain(first);
    const before = blocksOf(tables[0]);
    expect(d.admit(tables, 4, { epoch: 1, c: 8 })).toBe("short");
    expect(blocksOf(tables[0])).toEqual(before);
  });

  scenario(509)("fund a retry after a refusal that changed nothing", () => {
    const d = cacheOf(2, M(4));
    const prompt = d.prompt(1);
    const tables = d.tables();
    d.admit(tables, 8, { prompt });
    const before = blocksOf(tables[0]);
    const publish = { prompt, to: 1, kind: chunk, records: [4] };
    expect(d.admit(tables, 8, { epoch: 1, c: 6, publish })).toBe("short");
    expect(blocksOf(tables[0])).toEqual(before);
    expect(d.admit(tables, 4, { epoch: 1, c: 6, publish })).toBe("admitted");
    expect([blocksOf(tables[0]), d.index().numEntries]).toEqual([[0, before[1], before[0]], 0]);
  });

  scenario(
    240,
    241,
    242,
    243,
    245,
    257,
  )("slide before the next blocks are taken", () => {
    const d = new CacheDriver({ P: 2, pool: 63, groups: [F(2), W(4, 2)] });
    const tables = d.tables();
    d.admit(tables, 8);
    const empty = d.empty;
    d.admit(tables, 4, { epoch: 1, c: 8 });
    expect([tables[0].length, blocksOf(tables[1]).slice(0, 2), d.empty]).toEqual([6, [0, 0], empty - 2]);
    const e = new CacheDriver({ P: 2, pool: 63, groups: [F(2), W(4, 2)] });
    const twelve = e.tables();
    e.admit(twelve, 12);
    const before = e.empty;
    e.admit(twelve, 1, { epoch: 1, c: 12 });
    expect([twelve[1].length, twelve[0].length, e.empty - before]).toEqual([7, 7, 2]);
    expect(blocksOf(twelve[1]).slice(0, 4)).toEqual([0, 0, 0, 0]);
    const f = new CacheDriver({ P: 2, pool: 63, groups: [F(2), W(4, 2)] });
    const eight = f.tables();
    f.admit(eight, 8);
    const same = f.empty;
    f.admit(eight, 1, { epoch: 1, c: 8 });
    expect([f.empty, eight.map((table) => table.length), eight[0].availableTokens]).toEqual([
      same,
      [5, 5],
      1,
    ]);
    expect([f.index(0).numEntries, f.index(1).numEntries]).toEqual([0, 0]);
  });
});
