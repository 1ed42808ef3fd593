/** Blocks in far storage: operations of one plan, policies, keys. */
import { describe, expect } from "bun:test";
import {
  canClearDeviceCache,
  clearCache,
  clearDeviceCache,
} from "../../src/cache/coordinator/cache-clearing";
import { numNewlyReleasableLcmBlocks } from "../../src/cache/coordinator/capacity-views";
import { queueChainStores } from "../../src/cache/coordinator/store-queueing";
import { digestToHex } from "../../src/cache/prefix/prefix-hasher";
import { assertWellFormed } from "../../src/cache/tier/transfer-check";
import type { TransferOp } from "../../src/cache/tier/transfer-types";
import { resolveSettings } from "../../src/scheduler/settings";
import { blocksOf, CacheDriver, chunk, endpoint, F, M, type Prompt, W } from "../cache/cache-driver";
import { configOf, Driver, extent, type Setup, tokens } from "../scheduler/driver";
import { scenario } from "./scenario";

const op = (...transfers: [number, number, number][]): TransferOp => ({
  opId: 0,
  numTransfers: transfers.length,
  groups: Int32Array.from(transfers, ([group]) => group),
  sources: Int32Array.from(transfers, ([, source]) => source),
  destinations: Int32Array.from(transfers, ([, , destination]) => destination),
  contentHashes: new Int32Array(transfers.length * 8),
  pageOffsets: new Int32Array(transfers.length),
});

describe("the operations of one plan", () => {
  scenario(222, 433)("never copy one block twice", () => {
    expect(() => assertWellFormed([op([0, 1, 11], [0, 2, 22], [0, 1, 11])])).toThrow("repeats");
    expect(() => assertWellFormed([op([0, 1, 11]), op([0, 1, 11])])).toThrow("repeats");
  });

  scenario(434)("always copy something", () => {
    expect(() => assertWellFormed([op()])).toThrow("nothing to copy");
  });

  scenario(
    223,
    224,
    435,
  )("copy equal ids of different groups as two blocks, in order", () => {
    expect(() => assertWellFormed([op([0, 1, 11], [1, 1, 11])])).not.toThrow();
    expect(() => assertWellFormed([op([0, 10, 20], [0, 30, 40])])).not.toThrow();
  });
});

describe("policies of the Host tier", () => {
  scenario(436, 444)("separate having a Host from streaming to it", () => {
    const policy = (more: Partial<Setup>) => {
      const settings = resolveSettings(configOf({ P: 2, pool: 4, host: 1, groups: [F(2)], ...more }));
      return [settings.hasHostCache, settings.streamsDeviceToHost];
    };
    expect(policy({})).toEqual([true, true]);
    expect(policy({ role: "decode" })).toEqual([true, false]);
    expect(policy({ disableL2Cache: true })).toEqual([false, false]);
  });

  scenario(445)("need a Host below storage", () => {
    const build = (host: number) => () =>
      new Driver({ P: 2, pool: 4, host, enableL3Storage: true, groups: [F(2)] });
    expect(build(0)).toThrow("needs a Host cache");
    expect(build(7)).not.toThrow();
  });
});

/** One page of a prompt, cached on the device and held by a table. */
function held(d: CacheDriver, pages = 1) {
  const prompt = d.prompt(pages);
  const tables = d.tables();
  expect(d.admit(tables, pages * d.P, { prompt })).toBe("admitted");
  d.publish(tables, { prompt, to: pages, kind: endpoint }, pages * d.P, d.coordinator.result.epoch);
  return { prompt, tables };
}

const queue = (d: CacheDriver, ...blocks: number[]) => {
  for (const block of blocks) d.coordinator.tier?.queueStore(0, block);
};

describe("stores", () => {
  const small = (host = 1, pool = 2) => new CacheDriver({ P: 2, pool, host, groups: [F(2)] });

  scenario(437, 227)("in stream order pin nothing on the device", () => {
    const d = small();
    const { prompt, tables } = held(d);
    queue(d, ...blocksOf(tables[0]));
    const store = d.coordinator.tier?.startPendingStores(false);
    expect(store?.sourcePinned).toBe(false);
    expect(d.coordinator.tier?.holdsDeviceBlocks).toBe(false);
    d.free(tables);
    d.coordinator.groups[0].index.clear();
    expect(d.empty).toBe(2);
    d.coordinator.tier?.writeBackDone(store?.opId ?? -1);
    expect(d.isOnHost(0, prompt, 0)).toBe(true);
  });

  scenario(438)("hold a pinned source until they are acknowledged", () => {
    const d = small(1, 1);
    const { prompt, tables } = held(d);
    queue(d, ...blocksOf(tables[0]));
    const store = d.coordinator.tier?.startPendingStores(true);
    d.free(tables);
    expect(clearDeviceCache(d.coordinator)).toBe(false);
    expect(d.admit(d.tables(), 2)).toBe("short");
    d.coordinator.tier?.writeBackDone(store?.opId ?? -1);
    expect(d.isOnHost(0, prompt, 0)).toBe(true);
    expect(d.admit(d.tables(), 2)).toBe("admitted");
  });

  scenario(439)("keep their destination until they are acknowledged", () => {
    const d = small();
    const one = held(d);
    queue(d, ...blocksOf(one.tables[0]));
    const first = d.coordinator.tier?.startPendingStores(false);
    const two = held(d);
    queue(d, ...blocksOf(two.tables[0]));
    expect(d.coordinator.tier?.startPendingStores(false)).toBeUndefined();
    d.coordinator.tier?.writeBackDone(first?.opId ?? -1);
    queue(d, ...blocksOf(two.tables[0]));
    const second = d.coordinator.tier?.startPendingStores(false);
    expect(second?.destinations).toEqual(first?.destinations as Int32Array);
  });

  scenario(440, 228)("are dropped when Host has no place", () => {
    const d = small();
    d.cache(0, d.prompt(1), 0, { tier: "host", held: true });
    const { tables } = held(d);
    queue(d, ...blocksOf(tables[0]));
    expect(d.coordinator.tier?.startPendingStores(true)).toBeUndefined();
    d.free(tables);
    expect(clearDeviceCache(d.coordinator)).toBe(true);
  });

  scenario(441, 229)("do not count blocks that somebody else holds as released with a request", () => {
    const d = small(1, 2);
    const { tables } = held(d, 2);
    const [block] = blocksOf(tables[0]);
    d.index().refs.retain(block);
    expect(numNewlyReleasableLcmBlocks(d.coordinator, tables)).toBe(1);
    d.index().refs.release(block);
    expect(numNewlyReleasableLcmBlocks(d.coordinator, tables)).toBe(2);
  });

  scenario(442)("leave the state of an ordinary chunk alone and keep that of a prompt's end", () => {
    for (const pinned of [true, false]) {
      const d = new CacheDriver({ P: 2, pool: 2, host: 2, groups: [M(2)] });
      const prompt = d.prompt(1);
      const tables = d.tables();
      d.admit(tables, 2, { prompt });
      const { epoch } = d.coordinator.result;
      d.publish(tables, { prompt, to: 1, kind: chunk, records: [2] }, 2, epoch);
      prompt.chain.numKnown = 1;
      queueChainStores(d.coordinator, prompt.chain, 2);
      expect([d.isCached(0, prompt, 0), d.coordinator.tier?.numPendingStores]).toEqual([false, 0]);
      d.publish(tables, { prompt, to: 1, kind: endpoint, records: [2] }, 2, epoch);
      queueChainStores(d.coordinator, prompt.chain, 2);
      const store = d.coordinator.tier?.startPendingStores(pinned);
      expect(store?.numTransfers).toBe(1);
      d.free(tables);
      expect(d.index().isIdle(store?.sources[0] ?? 0)).toBe(!pinned);
      d.coordinator.tier?.writeBackDone(store?.opId ?? -1);
      expect(d.isOnHost(0, prompt, 0)).toBe(true);
    }
  });

  scenario(453)("carry the keys under which storage will find them", () => {
    const d = small();
    const { prompt, tables } = held(d);
    queue(d, ...blocksOf(tables[0]));
    const store = d.coordinator.tier?.startPendingStores(true);
    expect(digestToHex(store?.contentHashes ?? new Int32Array(8), 0)).toBe(
      digestToHex(prompt.chain.words, 0),
    );
    expect(Array.from(store?.pageOffsets ?? [])).toEqual([0]);
  });
});

describe("loads", () => {
  scenario(443)("of a state chunk keep it cached in both tiers", () => {
    const d = new CacheDriver({ P: 2, pool: 1, host: 1, groups: [M(2)] });
    const prompt = d.prompt(1);
    d.cache(0, prompt, 0, { tier: "host" });
    const tables = d.tables();
    const probe = d.probe(prompt, 1);
    expect(d.admit(tables, 0, { probe, prompt })).toBe("admitted");
    const { loadBack } = d.coordinator.result;
    d.free(tables);
    expect(canClearDeviceCache(d.coordinator)).toBe(false);
    d.coordinator.tier?.loadBackDone(loadBack?.opId ?? -1, true);
    const block = d.index().find(prompt.chain.words, 0, 0);
    expect([d.index().kindOf(block), d.isOnHost(0, prompt, 0)]).toEqual([chunk, true]);
    expect(d.probe(prompt, 1).deviceTokens).toBe(2);
    expect(clearDeviceCache(d.coordinator)).toBe(true);
    expect(d.empty).toBe(1);
  });
});

const stored = (d: CacheDriver, prompt: Prompt, group: number, ...pages: number[]) =>
  d.coordinator.storageKeys?.register(
    pages.map((page) => ({ group, digests: prompt.chain.words, at: page * 8, pageOffset: 0 })),
  );

describe("what only storage holds", () => {
  const l3 = (host: number, groups = [F(2)], P = 2, pool = 8) =>
    new CacheDriver({ P, pool, host, l3: true, groups });

  scenario(446)("is fetched through a fresh Host block", () => {
    const d = l3(4, [F(2)], 2, 4);
    const prompt = d.prompt(1);
    stored(d, prompt, 0, 0);
    const probe = d.probe(prompt, 1);
    expect([probe.deviceTokens, probe.hostTokens]).toEqual([0, 2]);
    expect(d.admit(d.tables(), 2, { probe, prompt })).toBe("admitted");
    const { loadBack } = d.coordinator.result;
    expect(Array.from(loadBack?.prefetchFromStorage ?? [])).toEqual([1]);
    expect(digestToHex(loadBack?.contentHashes ?? new Int32Array(8), 0)).toBe(
      digestToHex(prompt.chain.words, 0),
    );
  });

  scenario(447)("is published on both tiers only when it arrived", () => {
    for (const success of [false, true]) {
      const d = l3(4);
      const prompt = d.prompt(1);
      stored(d, prompt, 0, 0);
      d.admit(d.tables(), 2, { probe: d.probe(prompt, 1), prompt });
      expect([d.isCached(0, prompt, 0), d.isOnHost(0, prompt, 0)]).toEqual([false, false]);
      d.coordinator.tier?.loadBackDone(d.coordinator.result.loadBack?.opId ?? -1, success);
      expect([d.isCached(0, prompt, 0), d.isOnHost(0, prompt, 0)]).toEqual([success, success]);
    }
  });

  scenario(448)("waits for its page when another group has the page on Host", () => {
    const d = l3(4, [F(2), F(2)]);
    const prompt = d.prompt(1);
    d.cache(0, prompt, 0, { tier: "host" });
    stored(d, prompt, 1, 0);
    const tables = d.tables();
    d.admit(tables, 2, { probe: d.probe(prompt, 1), prompt });
    const { loadBack } = d.coordinator.result;
    expect(Array.from(loadBack?.prefetchFromStorage ?? [])).toEqual([0, 1]);
    expect([0, 1].map((group) => d.isCached(group, prompt, 0))).toEqual([false, false]);
    d.coordinator.tier?.loadBackDone(loadBack?.opId ?? -1, true);
    expect([0, 1].map((group) => d.isCached(group, prompt, 0))).toEqual([true, true]);
    expect(d.probe(prompt, 1).deviceTokens).toBe(2);
  });

  scenario(449, 450)("is forgotten when it turns out to be gone, without a trace", () => {
    const d = l3(4);
    const prompt = d.prompt(1);
    for (let i = 0; i < 8; i++) {
      stored(d, prompt, 0, 0);
      d.coordinator.storageKeys?.remove(0, prompt.chain.words, 0, 0);
      expect(d.coordinator.storageKeys?.size).toBe(0);
    }
    expect(d.probe(prompt, 1).hostTokens).toBe(0);
    stored(d, prompt, 0, 0);
    expect(d.coordinator.storageKeys?.size).toBe(1);
  });

  scenario(451)("is not fetched when Host has room for one of two groups", () => {
    const d = l3(1, [F(2), F(2)]);
    const prompt = d.prompt(1);
    stored(d, prompt, 0, 0);
    stored(d, prompt, 1, 0);
    const probe = d.probe(prompt, 1);
    expect(d.admit(d.tables(), 2, { probe, prompt })).toBe("hostShort");
    expect([probe.hostTokens, d.hostEmpty]).toEqual([0, 1]);
  });

  scenario(454)("is what Host has evicted", () => {
    const d = l3(2);
    const prompt = d.prompt(2);
    for (const page of [0, 1]) {
      d.cache(0, prompt, page, { tier: "host" });
      stored(d, prompt, 0, page);
    }
    const granted = d.coordinator.tier?.hostAllocator.acquire([0]) ?? [];
    expect(granted[0]).toBeGreaterThan(0);
    expect(d.isOnHost(0, prompt, 0)).toBe(false);
    expect(d.coordinator.storageKeys?.has(0, prompt.chain.words, 0, 0)).toBe(true);
    d.hostIndex().refs.release(granted[0]);
    const probe = d.probe(prompt, 2);
    expect(probe.hostTokens).toBe(4);
    const tables = d.tables();
    expect(d.admit(tables, 1, { probe, prompt })).toBe("admitted");
    const { loadBack } = d.coordinator.result;
    expect(Array.from(loadBack?.prefetchFromStorage ?? [])).toEqual([1, 0]);
    d.coordinator.tier?.loadBackDone(loadBack?.opId ?? -1, true);
    d.free(tables);
    expect(clearCache(d.coordinator)).toBe(true);
  });

  scenario(455, 456)("is remembered up to Host's size, the beginning of a prefix before its end", () => {
    const known = (d: CacheDriver, prompt: Prompt) =>
      [0, 1, 2].filter((page) => d.coordinator.storageKeys?.has(0, prompt.chain.words, page * 8, 0));
    const d = l3(2);
    const prompt = d.prompt(3);
    stored(d, prompt, 0, 0, 1, 2);
    expect([known(d, prompt), d.probe(prompt, 3).hostTokens]).toEqual([[0, 1], 4]);
    stored(d, prompt, 0, 2);
    expect(known(d, prompt)).toEqual([1, 2]);
    stored(d, prompt, 0, 0);
    expect(known(d, prompt)).toEqual([0, 2]);
    const e = l3(2);
    stored(e, prompt, 0, 0, 1);
    stored(e, prompt, 0, 2);
    stored(e, prompt, 0, 0, 1, 2);
    expect([known(e, prompt), e.probe(prompt, 3).hostTokens]).toEqual([[0, 1], 4]);
  });

  scenario(457)("is fetched as far as Host has room", () => {
    const d = l3(2);
    d.cache(0, d.prompt(1), 0, { tier: "host", held: true });
    const prompt = d.prompt(2);
    stored(d, prompt, 0, 0, 1);
    const probe = d.probe(prompt, 2);
    expect(probe.hostTokens).toBe(4);
    expect(d.admit(d.tables(), 1, { probe, prompt })).toBe("hostShort");
    expect(probe.hostTokens).toBe(2);
    expect(d.admit(d.tables(), 3, { probe, prompt })).toBe("admitted");
    expect(Array.from(d.coordinator.result.loadBack?.prefetchFromStorage ?? [])).toEqual([1]);
  });

  scenario(458, 531)("is matched anew at a shorter boundary, not cut in the middle of a window", () => {
    const d = l3(2, [W(5, 2)]);
    d.cache(0, d.prompt(1), 0, { tier: "host", held: true });
    const prompt = d.prompt(3);
    stored(d, prompt, 0, 1, 2);
    const probe = d.probe(prompt, 3);
    expect([probe.hostTokens, d.shapeOf(probe, 0, "host")]).toEqual([6, [0, 1, 1]]);
    expect(d.admit(d.tables(), 1, { probe, prompt })).toBe("hostShort");
    expect([probe.hostTokens, d.shapeOf(probe, 0, "host"), d.hostEmpty]).toEqual([0, [], 1]);
  });

  scenario(529, 530)("rounds a shortage down to a boundary that every group can use", () => {
    for (const groups of [[F(2)], [F(2), F(4)]]) {
      const d = l3(2, groups, 4);
      d.cache(0, d.prompt(1), 0, { tier: "host", held: true });
      const prompt = d.prompt(1);
      for (const offset of [0, 1]) {
        d.coordinator.storageKeys?.add(0, prompt.chain.words, 0, offset);
      }
      if (groups.length > 1) d.coordinator.storageKeys?.add(1, prompt.chain.words, 0, 0);
      const probe = d.probe(prompt, 1);
      expect(probe.hostTokens).toBe(groups.length > 1 ? 4 : 4);
      expect(d.admit(d.tables(), 1, { probe, prompt })).toBe("hostShort");
      expect(probe.hostTokens).toBe(0);
      expect(d.admit(d.tables(), 5, { probe, prompt })).toBe("admitted");
      expect(d.coordinator.result.loadBack).toBeUndefined();
    }
  });

  scenario(528)("keeps its Host blocks pinned when the tables are freed before it arrived", () => {
    const d = l3(2);
    const prompt = d.prompt(2);
    stored(d, prompt, 0, 0, 1);
    const tables = d.tables();
    d.admit(tables, 1, { probe: d.probe(prompt, 2), prompt });
    expect(d.hostEmpty).toBe(0);
    d.free(tables);
    expect(d.hostEmpty).toBe(0);
    d.coordinator.tier?.loadBackDone(d.coordinator.result.loadBack?.opId ?? -1, false);
    expect(d.hostEmpty).toBe(2);
  });
});

describe("storage through the scheduler", () => {
  const withL3 = (more: Partial<Setup> = {}) =>
    new Driver({ P: 2, pool: 31, host: 31, T: 64, enableL3Storage: true, groups: [F(2)], ...more });
  const register = (d: Driver, prompt: readonly number[], count?: number) => {
    const hashes = d.scheduler.prefixHashesForTokens(Int32Array.from(prompt)).slice(0, count);
    const keys = d.scheduler.expandPrefixKeys(hashes);
    d.scheduler.registerStorageKeys(keys);
    return keys;
  };

  scenario(452)("names every block of a page", () => {
    const d = new Driver({ P: 4, pool: 8, groups: [F(2)] });
    expect(d.scheduler.expandPrefixKeys(["ab"])).toEqual({
      groups: [0, 0],
      hashes: ["ab", "ab"],
      pageOffsets: [0, 1],
    });
  });

  scenario(459)("loads what Host lost to churn back from storage", () => {
    const d = new Driver({ P: 2, pool: 12, host: 6, enableL3Storage: true, groups: [F(2), W(4, 2)] });
    d.submit("r1", tokens(8));
    d.runToEnd("r1", 2);
    d.submit("churn", tokens(10, 300));
    d.runToEnd("churn", 2);
    const prompt = [...tokens(8), 90, 91];
    register(d, prompt);
    d.submit("r3", prompt);
    const plan = d.plan();
    expect(plan.loadBacks.map((load) => [load.numTransfers, ...load.prefetchFromStorage])).toEqual([
      [6, 1, 1, 1, 1, 1, 1],
    ]);
    d.ackLoads(plan);
    expect(d.scheduler.gauges().hostPinnedBlocks).toBe(0);
  });

  scenario(460, 564)("computes what Host has no room to fetch", () => {
    const d = withL3({ host: 2 });
    register(d, tokens(8), 3);
    d.submit("a", tokens(8));
    expect(extent(d.plan(), "a")).toEqual({ prefix: 4, input: 4, replay: 0 });
  });

  scenario(461)("never skips tokens that a coarser group has not got", () => {
    const d = withL3({ P: 4, host: 1, groups: [F(2), F(4)] });
    register(d, tokens(8), 1);
    d.submit("a", tokens(8));
    expect(extent(d.plan(), "a")).toEqual({ prefix: 0, input: 8, replay: 0 });
  });

  scenario(462, 565)("computes everything when what it promised has vanished", () => {
    const d = withL3();
    const keys = register(d, tokens(8));
    d.submit("a", tokens(8));
    const plan = d.plan();
    expect(extent(plan, "a").prefix).toBeGreaterThan(0);
    d.scheduler.unregisterStorageKeys(keys);
    d.send({ kind: "retract", request: d.handle("a") });
    d.ackLoads(plan, false);
    expect([d.waiting, d.scheduler.gauges().hostPinnedBlocks]).toEqual([1, 0]);
    const again = d.plan();
    expect([again.loadBacks.length, extent(again, "a").prefix]).toEqual([0, 0]);
    d.expectSound();
  });

  scenario(463, 464)("asks about prompts that can be admitted and about no others", () => {
    const d = withL3({ B: 1 });
    expect(d.scheduler.waitingPrefixHashes()).toEqual([]);
    d.submit("a", tokens(8));
    const hashes = d.scheduler.prefixHashesForTokens(Int32Array.from(tokens(8)));
    expect(hashes).toHaveLength(3);
    expect(d.scheduler.waitingPrefixHashes()).toEqual(hashes);
    d.step();
    expect(d.scheduler.waitingPrefixHashes()).toEqual([]);
    d.submit("b", tokens(8, 50));
    expect(d.scheduler.waitingPrefixHashes()).toEqual([]);
    const full = withL3({ pool: 5, B: 4 });
    full.submit("a", tokens(8));
    full.step();
    full.submit("b", tokens(8, 50));
    expect([full.free, full.scheduler.waitingPrefixHashes()]).toEqual([0, []]);
  });
});
