/** Failures that operators of such servers have reported, restated as checks. */
import { describe, expect, test } from "bun:test";
import { streamTokens } from "../../bench/scheduler/tokens";
import { clearCache } from "../../src/cache/coordinator/cache-clearing";
import { Int32BufferPool } from "../../src/cache/core/int32-buffer-pool";
import { namespaceRoot } from "../../src/cache/prefix/namespace-root";
import { PrefixChain } from "../../src/cache/prefix/prefix-chain";
import { digestToHex, PrefixHasher } from "../../src/cache/prefix/prefix-hasher";
import { RequestTokens } from "../../src/scheduler/request-tokens";
import { blocksOf, CacheDriver, type Prompt } from "../cache/cache-driver";
import { Driver, extent, F, idsOf, M, rowOf, type Setup, tableOf, tokens, W } from "../scheduler/driver";
import { Random } from "../sim/random";

const full = F(64, 2);
const window = W(128, 16, 8);
const state = M(64);

const layout = (groups: Setup["groups"], pool: number, more: Partial<Setup> = {}) =>
  new Driver({ P: 64, pool, T: 8192, groups, ...more });

/** Runs a prompt to its first token and finishes it; returns what it took from the cache. */
function sent(d: Driver, id: string, prompt: readonly number[], more = {}): number {
  d.submit(id, prompt, more);
  let hit: number | undefined;
  for (;;) {
    const row = rowOf(d.step(), id);
    hit ??= row.begin;
    if (row.completesPrompt) break;
  }
  d.finish(id);
  d.plan();
  return hit;
}

describe("a sparse group", () => {
  test("never pushes the common prefix past what the dense group settled", () => {
    const d = new CacheDriver({ P: 64, pool: 64, groups: [full, state] });
    const prompt = d.prompt(5);
    d.cachePages(0, prompt, [0, 1, 2]);
    d.cachePages(1, prompt, [0, 1, 2, 3]);
    const seen = () => {
      const probe = d.probe(prompt, 5);
      return [probe.deviceTokens, d.shapeOf(probe, 0).length, d.shapeOf(probe, 1).length];
    };
    const drop = (page: number) => d.index(1).evict(d.index(1).find(prompt.chain.words, page * 8, 0));
    expect(seen()).toEqual([192, 3, 3]);
    drop(2);
    expect(seen()).toEqual([128, 2, 2]);
    drop(1);
    drop(0);
    expect(seen()).toEqual([0, 0, 0]);
  });
});

describe("an edit near the end of a prompt", () => {
  const a = tokens(512);
  const b = [...tokens(500), ...tokens(40, 9000)];
  const five = () => new Driver({ P: 32, pool: 64, T: 96, groups: [F(32, 4), W(128, 16, 8)] });

  test("resumes at the last boundary whose window is there", () => {
    const d = five();
    sent(d, "a", a);
    expect(sent(d, "b", b)).toBe(480);
  });

  test("falls to the next lower boundary with a whole window, never to a broken one", () => {
    const d = new CacheDriver({ P: 32, pool: 64, groups: [F(32, 4), W(128, 16, 8)] });
    const prompt = d.prompt(16);
    d.cachePages(
      0,
      prompt,
      Array.from({ length: 16 }, (_, page) => page),
    );
    d.cachePages(
      1,
      prompt,
      Array.from({ length: 16 }, (_, page) => page),
    );
    for (const slot of [22, 23])
      d.index(1).evict(d.index(1).find(prompt.chain.words, (slot >> 1) * 8, slot & 1));
    const probe = d.probe(prompt, 15);
    expect(probe.deviceTokens).toBe(352);
    expect(probe.closedTokens).toBe(480);
  });
});

describe("a window under speculation", () => {
  for (const w of [1, 4, 8]) {
    for (const depth of [0, 1]) {
      test(`is reclaimed at every step with verify width ${w} and overlap ${depth}`, () => {
        const d = layout([full, window], 37, { T: 256, w, depth });
        d.submit("a", tokens(64), { maxNewTokens: 4096 });
        const accepted = new Random(w * 10 + depth);
        const out: { planId: number; count: number }[] = [];
        const live = new Set<number>();
        let produced = 0;
        while (produced < 4096) {
          while (out.length > depth) land();
          const plan = d.plan();
          const row = rowOf(plan, "a");
          out.push({ planId: plan.planId, count: row.isPrefill ? 1 : accepted.int(1, w) });
          if (row.begin > 320) live.add(tableOf(plan, "a", 1).filter((block) => block !== 0).length);
          if (depth === 0) land();
        }
        function land(): void {
          const { planId, count } = out.shift() as { planId: number; count: number };
          produced += count;
          const tokenCounts = Int32Array.of(count);
          d.send({ kind: "forwardResult", planId, tokenCounts, tokens: new Int32Array(count).fill(3) });
        }
        expect(d.scheduler.gauges().retractions).toBe(0);
        expect(Math.max(...live)).toBeLessThanOrEqual(10 + Math.ceil(w / 16) + depth);
        expect(Math.max(...live) - Math.min(...live)).toBeLessThanOrEqual(2);
      });
    }
  }
});

describe("an admission that fails after it matched a snapshot", () => {
  test("leaves no trace, a thousand times over", () => {
    const d = new CacheDriver({ P: 64, pool: 10, groups: [full, state] });
    const prompt = d.prompt(6);
    const running = d.tables();
    d.admit(running, [64 * 8, { extent: 64 * 2, first: 0 }]);
    d.cachePages(0, prompt, [0]);
    d.cachePages(1, prompt, [0]);
    const snapshot = () => ({
      empty: d.coordinator.device.pool.emptyParents(),
      free: [0, 1].map((group) => d.coordinator.device.pool.freeSlotsOf(group)),
      idle: [0, 1].map((group) => d.index(group).numIdle),
      epochs: [0, 1].map((group) => d.index(group).epochOf(d.index(group).find(prompt.chain.words, 0, 0))),
    });
    const before = snapshot();
    expect(before.empty).toHaveLength(2);
    const attempt = () =>
      d.admit(d.tables(), [336, { extent: 400, first: 5 }], { probe: d.probe(prompt, 6), prompt });
    for (let i = 0; i < 1000; i++) expect(attempt()).toBe("short");
    expect(snapshot()).toEqual(before);
    d.free(running);
    const tables = d.tables();
    expect(d.admit(tables, [336, { extent: 400, first: 5 }], { probe: d.probe(prompt, 6), prompt })).toBe(
      "admitted",
    );
    d.free(tables);
    expect([clearCache(d.coordinator), d.empty]).toEqual([true, 10]);
  });
});

describe("a request that can never fit", () => {
  test("is refused before it enters the queue, and blocks nobody", () => {
    const d = layout([full, window, state], 22, { T: 256 });
    expect(() => d.submit("long", tokens(2500), { maxNewTokens: 16 })).toThrow("asks for 2516 tokens");
    const fits = d.scheduler.maxSingleRequestTokens;
    expect(() => d.submit("grows", tokens(900), { maxNewTokens: fits - 899 })).toThrow("can carry");
    for (let i = 0; i < 5; i++) sent(d, `r${i}`, tokens(100, i * 1000), { maxNewTokens: 16 });
    d.expectAllFree();
  });
});

describe("two prompts that wait for loads", () => {
  test("never hold each other up for good, in any order of completions", () => {
    for (let seed = 0; seed < 200; seed++) {
      const random = new Random(seed);
      const d = layout([full], 8, { host: 16, B: 4, T: 256 });
      const prompts = [tokens(512), tokens(512, 5000)];
      for (const [i, prompt] of prompts.entries()) {
        d.submit(`seed${i}`, prompt);
        d.runToEnd(`seed${i}`, 2);
      }
      d.scheduler.clearL1Cache();
      for (const [i, prompt] of prompts.entries())
        d.submit(`r${i}`, [...prompt, ...tokens(128, 9000 + 500 * i)]);
      const loads: number[] = [];
      const stores: number[] = [];
      const pending = new Set(["r0", "r1"]);
      for (let round = 0; pending.size > 0; round++) {
        if (round > 200) throw new Error(`seed ${seed}: ${[...pending]} never finish`);
        const plan = d.plan();
        for (const op of plan.loadBacks) loads.push(op.opId);
        for (const op of plan.writeBacks) stores.push(op.opId);
        d.results(plan);
        while (loads.length > 0 && random.chance(0.4)) {
          d.send({ kind: "loadBackDone", opId: loads.shift() as number, success: true });
        }
        while (stores.length > 0 && random.chance(0.5)) {
          d.send({ kind: "writeBackDone", opId: stores.shift() as number });
        }
        for (const id of [...pending]) {
          const handle = d.scheduler.handleOf(id);
          if (handle === undefined || d.scheduler.tokenCountOf(handle) < 642) continue;
          if (d.scheduler.canFinish(handle)) d.finish(id);
          else d.abort(id);
          pending.delete(id);
        }
        d.expectSound();
      }
    }
  });
});

/** Registers these slots of a group as being in storage. */
const store = (d: CacheDriver, prompt: Prompt, group: number, slots: readonly number[]) => {
  const r = d.coordinator.groups[group].geometry.blocksPerPrefixPage;
  for (const slot of slots) {
    d.coordinator.storageKeys?.add(group, prompt.chain.words, Math.floor(slot / r) * 8, slot % r);
  }
};
const lose = (d: CacheDriver, prompt: Prompt, group: number, slot: number) => {
  const r = d.coordinator.groups[group].geometry.blocksPerPrefixPage;
  d.coordinator.storageKeys?.remove(group, prompt.chain.words, Math.floor(slot / r) * 8, slot % r);
};
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe("one group's lost block", () => {
  const stored = () => {
    const d = new CacheDriver({ P: 64, pool: 64, host: 64, l3: true, groups: [full, window, state] });
    const prompt = d.prompt(8);
    store(d, prompt, 0, range(0, 7));
    store(d, prompt, 1, range(24, 31));
    store(d, prompt, 2, [6, 7]);
    return { d, prompt, boundary: () => d.probe(prompt, 8).hostTokens };
  };

  test("moves the boundary to the next one at which every group is whole", () => {
    const whole = stored();
    expect(whole.boundary()).toBe(512);
    const noWindow = stored();
    lose(noWindow.d, noWindow.prompt, 1, 26);
    expect(noWindow.boundary()).toBe(0);
    const noPage = stored();
    lose(noPage.d, noPage.prompt, 0, 5);
    expect(noPage.boundary()).toBe(0);
    const noSnapshot = stored();
    lose(noSnapshot.d, noSnapshot.prompt, 2, 7);
    expect(noSnapshot.boundary()).toBe(0);
    store(noSnapshot.d, noSnapshot.prompt, 1, range(20, 27));
    expect(noSnapshot.boundary()).toBe(448);
  });

  test("of a load that failed publishes nothing and lets the request compute", () => {
    const d = layout([full, window, state], 64, { host: 64, enableL3Storage: true });
    const prompt = tokens(513);
    const keys = d.scheduler.expandPrefixKeys(d.scheduler.prefixHashesForTokens(Int32Array.from(prompt)));
    d.scheduler.registerStorageKeys(keys);
    d.submit("a", prompt);
    const plan = d.plan();
    expect(extent(plan, "a").prefix).toBe(512);
    d.scheduler.unregisterStorageKeys(keys);
    d.send({ kind: "retract", request: d.handle("a") });
    d.ackLoads(plan, false);
    expect(d.scheduler.gauges().cachedBlocks + d.scheduler.gauges().hostCachedBlocks).toBe(0);
    expect(extent(d.plan(), "a").prefix).toBe(0);
    d.expectSound();
  });
});

describe("blocks fetched from storage", () => {
  test("are placed and keyed at their own index, whatever tier has their neighbours", () => {
    for (const onHost of [range(0, 3), range(4, 7), [0, 2, 4, 6]]) {
      const d = new CacheDriver({ P: 64, pool: 16, host: 16, l3: true, groups: [full] });
      const prompt = d.prompt(8);
      d.cachePages(0, prompt, onHost, "host");
      store(
        d,
        prompt,
        0,
        range(0, 7).filter((page) => !onHost.includes(page)),
      );
      const tables = d.tables();
      expect(d.admit(tables, 1, { probe: d.probe(prompt, 8), prompt })).toBe("admitted");
      const { loadBack, hostTokens } = d.coordinator.result;
      expect(hostTokens).toBe(512);
      for (let i = 0; i < 8; i++) {
        const slot = blocksOf(tables[0]).indexOf(loadBack?.destinations[i] ?? 0);
        const hash = digestToHex(loadBack?.contentHashes ?? new Int32Array(64), i * 8);
        expect(hash).toBe(digestToHex(prompt.chain.words, slot * 8));
        expect(loadBack?.prefetchFromStorage[i]).toBe(Number(!onHost.includes(slot)));
      }
      d.coordinator.tier?.loadBackDone(loadBack?.opId ?? -1, true);
      d.free(tables);
      expect(d.probe(prompt, 8).deviceTokens).toBe(512);
    }
  });
});

describe("a Host block whose store is under way", () => {
  test("is given to nobody else, and stores beyond Host's size are dropped", () => {
    const d = layout([full], 64, { host: 4 });
    const open: { opId: number; destinations: number[] }[] = [];
    for (let i = 0; i < 8; i++) {
      d.submit(`r${i}`, tokens(513, i * 1000));
      for (let step = 0; step < 2; step++) {
        for (const op of d.step().writeBacks)
          open.push({ opId: op.opId, destinations: [...op.destinations] });
      }
      d.finish(`r${i}`);
      for (const op of d.plan().writeBacks) open.push({ opId: op.opId, destinations: [...op.destinations] });
      const busy = open.flatMap((op) => op.destinations);
      expect(new Set(busy).size).toBe(busy.length);
      expect(busy.length).toBeLessThanOrEqual(8);
      if (i % 3 === 2) d.send({ kind: "writeBackDone", opId: (open.shift() as { opId: number }).opId });
    }
  });
});

describe("a flush", () => {
  test("forgets what storage was believed to hold along with both tiers", () => {
    const d = layout([full, window, state], 64, { host: 64, enableL3Storage: true });
    const prompt = tokens(257);
    d.submit("a", prompt);
    d.runToEnd("a", 2);
    expect(d.scheduler.clearCache()).toBe(true);
    expect(sent(d, "b", prompt)).toBe(0);
  });
});

describe("namespaces", () => {
  test("never share a prefix and always share with themselves", () => {
    const settings = [
      { adapter: "north" },
      { salt: "north" },
      { salt: "a", tenant: "bc" },
      { salt: "ab", tenant: "c" },
      {},
    ];
    const d = layout([full], 64);
    const prompt = tokens(128);
    const send = (round: number) =>
      settings.map((setting, i) => {
        const root = namespaceRoot(setting);
        return sent(d, `r${round}.${i}`, prompt, root === undefined ? {} : { namespaceRoot: root });
      });
    expect(send(1)).toEqual([0, 0, 0, 0, 0]);
    expect(send(2)).toEqual([64, 64, 64, 64, 64]);
  });

  test("are taken from the front of the chain, so that events tell no text of theirs", () => {
    const d = new Driver({ P: 2, pool: 8, enableKvCacheEvents: true, groups: [F(2)] });
    const root = namespaceRoot({ salt: "secret" }) as Uint8Array;
    d.submit("a", tokens(4), { namespaceRoot: root });
    d.runToEnd("a", 1);
    const parent = new DataView(root.buffer, root.byteOffset).getBigUint64(0, true);
    const [first, ...others] = d.scheduler.drainKvEvents();
    expect(first).toMatchObject({ tokenIds: [], parentBlockHash: parent });
    for (const event of others) expect(event).toMatchObject({ tokenIds: [] });
  });
});

describe("page keys", () => {
  test("are the same in every process and match a golden chain", () => {
    const prompt = streamTokens(42, 4096 * 64);
    const chain = new PrefixChain();
    chain.extend(4096, new RequestTokens(prompt), new PrefixHasher(64), new Int32BufferPool());
    expect(digestToHex(chain.words, 4095 * 8)).toBe(
      "67ff7bf65e9c724cd897ad68ee277fe8da10c2ecb9ca6e56a36b5ae378c1b9c2",
    );
    const hashes = [0, 1].map(() => layout([full], 8).scheduler.prefixHashesForTokens(prompt.slice(0, 513)));
    expect(hashes[0]).toEqual(hashes[1]);
    expect(hashes[0]).toHaveLength(8);
    expect(hashes[0][7]).toBe(digestToHex(chain.words, 7 * 8));
  });
});

describe("a prompt that is cached whole", () => {
  const lengths = [1, 63, 64, 65, 127, 128, 129, 192, 193];
  for (const [name, groups] of [
    ["history and a window", [full, window]],
    ["history, a window and state", [full, window, state]],
  ] as const) {
    for (const T of [8192, 64]) {
      test(`of ${name} in chunks of ${T} resumes one token before its end at the latest`, () => {
        const d = layout(groups, 200, { T });
        const hits = lengths.map((length, i) => {
          const prompt = tokens(length, 10_000 * (i + 1));
          sent(d, `first${length}`, prompt);
          return sent(d, `second${length}`, prompt);
        });
        expect(hits).toEqual([0, 0, 0, 64, 64, 64, 128, 128, 192]);
        // A window is kept where a chunk ended and at the prompt's end; a snapshot only at the prompt's end.
        const shorter = tokens(100, 10_000 * lengths.length);
        expect(sent(d, "shorter", shorter)).toBe(groups.length === 2 && T === 64 ? 64 : 0);
      });
    }
  }
});

describe("state under speculation", () => {
  for (const depth of [0, 1]) {
    for (const host of [0, 64]) {
      test(`is resumed where prefill left it, with overlap ${depth} and ${host} blocks of Host`, () => {
        const d = layout([full, window, state], 64, { w: 4, depth, host });
        const first = tokens(190);
        d.submit("one", first);
        const text = [...first];
        const out: number[][] = [];
        const planIds: number[] = [];
        while (text.length < 260) {
          const plan = d.plan();
          d.ackWrites(plan);
          const row = rowOf(plan, "one");
          planIds.push(plan.planId);
          out.push(row.isPrefill ? [501] : [502, 503]);
          if (planIds.length <= depth) continue;
          const produced = out.shift() as number[];
          text.push(...produced);
          d.send({
            kind: "forwardResult",
            planId: planIds.shift() as number,
            tokenCounts: Int32Array.of(produced.length),
            tokens: Int32Array.from(produced),
          });
        }
        d.finish("one");
        d.ackWrites(d.plan());
        d.submit("two", [...text, ...tokens(40, 7000)]);
        expect(extent(d.plan(), "two").prefix).toBe(128);
      });
    }
  }
});

describe("a transfer that ends badly", () => {
  test("returns both sides to where they were, whichever side gives up", () => {
    for (let seed = 0; seed < 200; seed++) {
      const random = new Random(seed);
      const d = layout([full, window, state], 80, {
        role: random.chance(0.5) ? "prefill" : "decode",
        T: 400,
      });
      d.submit("a", tokens(1024));
      const abort = () =>
        d.send({ kind: random.chance(0.5) ? "abort" : "transferFailed", request: d.handle("a") });
      const stop = random.int(0, 4);
      const stages = [
        () => d.send({ kind: "bootstrapped", request: d.handle("a") }),
        () => d.plan(),
        () =>
          d.config.role === "decode"
            ? d.send({ kind: "remotePrefillDone", request: d.handle("a"), token: 5 })
            : d.plan(),
        () => d.plan(),
      ];
      for (const stage of stages.slice(0, stop)) stage();
      abort();
      d.plan();
      expect(idsOf(d.plan())).toEqual([]);
      d.expectAllFree();
    }
  });
});
