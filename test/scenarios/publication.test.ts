/** When computed history and state become visible to others. */
import { describe, expect } from "bun:test";
import { GroupDemand } from "../../src/cache/coordinator/group-demand";
import { queueChainStores } from "../../src/cache/coordinator/store-queueing";
import { validateConfig } from "../../src/scheduler/validate-config";
import { blocksOf, CacheDriver, chunk, endpoint, F, M, promoted, W } from "../cache/cache-driver";
import { configOf, Driver, type Setup, tableOf, tokens } from "../scheduler/driver";
import { scenario } from "./scenario";

type Groups = ConstructorParameters<typeof CacheDriver>[0]["groups"];

/** Tables of fresh blocks for a prompt. */
function held(groups: Groups, pages: number, more: { P?: number; pool?: number; host?: number } = {}) {
  const d = new CacheDriver({ P: 4, pool: 64, streams: (more.host ?? 0) > 0, ...more, groups });
  const prompt = d.prompt(pages);
  const tables = d.tables();
  expect(d.admit(tables, pages * d.P, { prompt })).toBe("admitted");
  const cached = (group: number) =>
    Array.from({ length: pages }, (_, page) => page).filter((page) => d.isCached(group, prompt, page));
  return { d, prompt, tables, cached, epoch: d.coordinator.result.epoch };
}

describe("publishing history", () => {
  scenario(
    182,
    183,
    184,
  )("at a slot offset extends a prefix and skips a window's holes", () => {
    const { d, prompt, tables, epoch } = held([F(4), W(4, 4)], 6);
    d.coordinator.cacheFullBlocks(tables, prompt, 0, 4, epoch);
    d.coordinator.cacheFullBlocks(tables, prompt, 4, 6, epoch);
    const probe = d.probe(prompt, 6);
    expect([probe.deviceTokens, probe.device[0].slots.slice(0, 6)]).toEqual([
      24,
      Int32Array.from(blocksOf(tables[0])),
    ]);
    expect(probe.device[1].slots[5]).toBe(tables[1].at(5));
    const holes = held([F(4), W(4, 4)], 6);
    holes.d.admit(holes.tables, 0, { epoch: holes.epoch, c: 20 });
    holes.d.coordinator.cacheFullBlocks(holes.tables, holes.prompt, 2, 6, holes.epoch);
    expect([holes.cached(0), holes.cached(1)]).toEqual([
      [2, 3, 4, 5],
      [4, 5],
    ]);
    for (const [first, end] of [
      [2, 7],
      [-1, 1],
    ]) {
      expect(() => holes.d.coordinator.cacheFullBlocks(holes.tables, holes.prompt, first, end, 1)).toThrow(
        "not all in",
      );
    }
  });

  scenario(185)("slides windows and leaves full history alone", () => {
    const { d, tables, epoch } = held([F(2), W(4, 2)], 3, { P: 2 });
    d.admit(tables, 0, { epoch, c: 5 });
    expect(tables.map((table) => blocksOf(table).map((block) => Number(block !== 0)))).toEqual([
      [1, 1, 1],
      [0, 1, 1],
    ]);
  });

  scenario(244)("is what the next request hits, the very same blocks", () => {
    const { d, prompt, tables, epoch } = held([F(2)], 4, { P: 2 });
    d.publish(tables, { prompt, to: 2 }, 4, epoch);
    d.admit(tables, 1, { epoch, c: 8, publish: { prompt, from: 2, to: 4 } });
    const probe = d.probe(prompt, 4);
    expect([probe.deviceTokens, Array.from(probe.device[0].slots.subarray(0, 4))]).toEqual([
      8,
      blocksOf(tables[0]).slice(0, 4),
    ]);
  });

  scenario(
    219,
    220,
    512,
    513,
    525,
    526,
  )("of a window covers what its boundary reads, new pages or not", () => {
    const boundary = held([W(9, 4)], 4);
    boundary.d.publish(boundary.tables, { prompt: boundary.prompt, from: 3, to: 4 }, 16, boundary.epoch);
    expect(boundary.cached(0)).toEqual([2, 3]);
    const unaligned = held([W(9, 4)], 4);
    unaligned.d.publish(
      unaligned.tables,
      { prompt: unaligned.prompt, to: 3, kind: endpoint },
      14,
      unaligned.epoch,
    );
    expect(unaligned.cached(0)).toEqual([1, 2]);
  });

  scenario(
    220,
    508,
    168,
  )("of many chunks leaves one snapshot, the last, and all of history", () => {
    const d = new CacheDriver({ P: 128, pool: 512, groups: [M(128), M(128), M(128), F(128, 32)] });
    const prompt = d.prompt(256);
    const tables = d.tables();
    const chunkTokens = 64 * 128;
    for (let i = 0; i < 4; i++) {
      const end = (i + 1) * chunkTokens;
      const first = { extent: end, first: end / 128 - 1 };
      const publish = { prompt, from: (i - 1) * 64, to: i * 64, records: [i * chunkTokens] };
      const options = i === 0 ? { prompt } : { epoch: 1, c: i * chunkTokens, publish };
      expect(d.admit(tables, [first, first, first, chunkTokens], options)).toBe("admitted");
    }
    const final = { prompt, from: 192, to: 256, kind: endpoint, records: [32768] };
    d.publish(tables, final, 32768, 1);
    expect([0, 1, 2, 3].map((group) => d.index(group).numEntries)).toEqual([1, 1, 1, 256]);
    expect(d.probe(prompt, 256).deviceTokens).toBe(32768);
  });
});

describe("publishing state", () => {
  scenario(211, 521)("happens for completed pages only", () => {
    const { d, prompt, tables, epoch } = held([F(4)], 1);
    d.admit(tables, 0, { epoch, c: 4, prompt });
    expect(d.index().numEntries).toBe(0);
    expect(d.isCached(0, prompt, 0)).toBe(false);
  });

  scenario(
    212,
    518,
    519,
    520,
  )("refuses pages without a new one, without a frontier, or no pages at all", () => {
    const { d, prompt, tables, epoch } = held([F(4)], 2);
    expect(() => d.publish(tables, { prompt, from: 2, to: 2 }, 8, epoch)).toThrow("include a new one");
    expect(() => d.publish(tables, { prompt, to: 1 }, -1, epoch)).toThrow("number of computed tokens");
    expect(() => d.publish(tables, { prompt, to: 0 }, 8, epoch)).toThrow("needs completed pages");
    expect(() => d.admit(tables, 1, { epoch, c: -1, publish: { prompt, to: 1 } })).toThrow("computed tokens");
  });

  scenario(
    213,
    214,
    522,
  )("needs an endpoint and a record", () => {
    const { d, prompt, tables, cached, epoch } = held([F(4), M(4)], 3);
    d.publish(tables, { prompt, to: 3, records: [12] }, 12, epoch);
    expect([cached(0), cached(1)]).toEqual([[0, 1, 2], []]);
    expect(d.index(1).refs.ownersOf(tables[1].at(2))).toBe(1);
    d.publish(tables, { prompt, to: 3, stateKind: endpoint, records: [12] }, 12, epoch);
    expect([cached(1), d.index(1).kindOf(tables[1].at(2))]).toEqual([[2], endpoint]);
  });

  scenario(215, 523)("publishes exactly the recorded boundaries that the hashes cover", () => {
    for (const [records, expected] of [
      [[], []],
      [[4], [0]],
      [[8], [1]],
      [
        [4, 8],
        [0, 1],
      ],
      [[4, 12], [0]],
    ] as const) {
      for (const direct of [true, false]) {
        const { d, prompt, tables, cached, epoch } = held([M(4)], 3);
        const publish = { prompt, to: 2, kind: endpoint, records: [...records] };
        if (direct) d.publish(tables, publish, 10, epoch);
        else d.admit(tables, 0, { epoch, c: 10, publish });
        expect(cached(0)).toEqual([...expected]);
      }
    }
  });

  scenario(524)("keeps an ordinary chunk's snapshot private whatever the span", () => {
    for (const g of [1, 2, 4]) {
      for (const kind of [chunk, endpoint, promoted] as const) {
        const { d, prompt, tables, epoch } = held([M(g)], 2);
        const slot = 4 / g - 1;
        const block = tables[0].at(slot);
        d.publish(tables, { prompt, to: 1, kind, records: [4] }, 4, epoch);
        const isPublished = kind !== chunk;
        expect(d.index().numEntries).toBe(Number(isPublished));
        expect(d.probe(prompt, 1).deviceTokens).toBe(isPublished ? 4 : 0);
        expect(d.index().refs.ownersOf(block)).toBe(isPublished ? 2 : 1);
        d.index().refs.retain(block);
        d.admit(tables, 0, { epoch, c: 6 });
        expect(tables[0].at(slot)).toBe(0);
        expect(d.coordinator.device.pool.isOccupied(0, block)).toBe(true);
        d.index().refs.release(block);
        expect(d.coordinator.device.pool.isOccupied(0, block)).toBe(isPublished);
      }
    }
  });
});

describe("sparse demands", () => {
  const sparse = () => new CacheDriver({ P: 2, pool: 5, groups: [F(2, 2), M(2)] });
  const demands = [
    { dense: 8, reserve: 1 },
    { extent: 8, first: 3, reserve: 1 },
  ];

  scenario(216)("materialise the suffix that they name", () => {
    const d = sparse();
    const tables = d.tables();
    expect(d.admit(tables, demands)).toBe("admitted");
    expect([
      blocksOf(tables[0]).includes(0),
      blocksOf(tables[1]).map((block) => Number(block !== 0)),
    ]).toEqual([false, [0, 0, 0, 1, 1]]);
    expect([tables[0].length, tables.map((table) => table.availableTokens), d.empty]).toEqual([5, [2, 2], 0]);
  });

  scenario(217)("let history decide the prefix while state keeps its holes", () => {
    const d = new CacheDriver({ P: 2, pool: 9, groups: [F(2, 2), M(2)] });
    const prompt = d.prompt(4);
    d.cachePages(0, prompt, [0, 1, 2]);
    expect(d.probe(prompt, 4).deviceTokens).toBe(0);
    const probe = d.coordinator.probeDecodeDevicePrefix(prompt, 4);
    expect([probe.deviceTokens, d.shapeOf(probe, 1)]).toEqual([6, [0, 0, 0]]);
    const tables = d.tables();
    d.admit(
      tables,
      [
        { dense: 2, reserve: 1 },
        { extent: 8, first: 3, reserve: 1 },
      ],
      { probe, prompt },
    );
    expect([d.coordinator.result.deviceTokens, tables[0].length]).toEqual([6, 5]);
    expect(blocksOf(tables[1]).map((block) => Number(block !== 0))).toEqual([0, 0, 0, 1, 1]);
  });

  scenario(218)("take nothing from any group when they do not fit", () => {
    const d = new CacheDriver({ P: 2, pool: 4, groups: [F(2, 2), M(2)] });
    const tables = d.tables();
    expect([d.admit(tables, demands), tables.map((table) => table.length), d.empty]).toEqual([
      "short",
      [0, 0],
      4,
    ]);
    expect(new GroupDemand().sparseSuffix(8, 3, 1)).toMatchObject({ tokens: 8, firstBlock: 3 });
  });
});

describe("what is queued for Host", () => {
  const queued = (d: CacheDriver, prompt: { chain: { words: Int32Array } }, pages: number) =>
    (d.coordinator.tier?.pendingStores() ?? []).map(({ group, block }) => {
      const { index } = d.coordinator.groups[group];
      const page = Array.from({ length: pages }, (_, i) => i).find(
        (i) => index.find(prompt.chain.words, i * 8, 0) === block,
      );
      return `${group}:h${page}`;
    });

  scenario(193)("is nothing without a Host", () => {
    const { d, prompt, tables, epoch } = held([F(4)], 1);
    d.publish(tables, { prompt, to: 1, streams: true }, 4, epoch);
    expect(d.coordinator.tier).toBeUndefined();
  });

  scenario(194)("does not change what a window can drop", () => {
    const { d, tables, epoch } = held([W(4, 2)], 4, { P: 2, pool: 4 });
    d.admit(tables, 0, { epoch, c: 8 });
    expect(d.empty).toBe(2);
  });

  scenario(510)("is a chunk's history, and never its state", () => {
    const { d, prompt, tables, epoch } = held([F(2), W(8, 2), M(2)], 3, { P: 2, host: 32 });
    prompt.chain.numKnown = 2;
    d.publish(tables, { prompt, to: 2, records: [4], streams: true }, 4, epoch);
    expect(queued(d, prompt, 3)).toEqual(["0:h0", "0:h1", "1:h0", "1:h1"]);
    expect(d.index(2).numEntries).toBe(0);
    d.coordinator.tier?.dropPendingStores();
    d.publish(tables, { prompt, from: 2, to: 3 }, 6, epoch);
    expect(queued(d, prompt, 3)).toEqual(["1:h2"]);
    d.coordinator.tier?.dropPendingStores();
    prompt.chain.numKnown = 3;
    queueChainStores(d.coordinator, prompt.chain, 4);
    expect(queued(d, prompt, 3)).toEqual(["0:h0", "0:h1", "0:h2", "1:h0", "1:h1", "1:h2"]);
  });

  scenario(511)("is a prompt's end with the snapshot of every state group", () => {
    const { d, prompt, tables, epoch } = held([F(2), M(2), M(2), M(2)], 3, { P: 2, host: 32 });
    d.publish(tables, { prompt, to: 2, kind: endpoint, records: [4], streams: true }, 4, epoch);
    expect(queued(d, prompt, 3)).toEqual(["0:h0", "0:h1", "1:h1", "2:h1", "3:h1"]);
    d.coordinator.tier?.dropPendingStores();
    d.publish(tables, { prompt, from: 2, to: 3 }, 6, epoch);
    expect(queued(d, prompt, 3)).toEqual([]);
    prompt.chain.numKnown = 3;
    queueChainStores(d.coordinator, prompt.chain, 4);
    expect(queued(d, prompt, 3)).toEqual(["0:h0", "0:h1", "0:h2", "1:h1", "2:h1", "3:h1"]);
  });
});

describe("room on Host for a batch", () => {
  /** A Host full of the given groups' entries, oldest first. */
  const hostOf = (host: number, groups: Groups, entries: { group: number; held?: boolean }[]) => {
    const d = new CacheDriver({ P: 4, pool: 8, host, groups });
    const prompts = entries.map(({ group, held: isHeld = false }) => {
      const prompt = d.prompt(1);
      d.cache(group, prompt, 0, { tier: "host", held: isHeld });
      return { group, prompt };
    });
    const kept = () => prompts.map(({ group, prompt }) => d.isOnHost(group, prompt, 0));
    const acquire = (...wanted: number[]) => d.coordinator.tier?.hostAllocator.acquire(wanted) ?? [];
    const scans = () => d.coordinator.tier?.hostAllocator.stats;
    return { d, kept, acquire, scans };
  };
  const four = [{ group: 0 }, { group: 0 }, { group: 0 }, { group: 0 }];

  scenario(195)("comes from a cold child of the same group", () => {
    const { kept, acquire } = hostOf(1, [F(4, 2), F(4)], [{ group: 0 }, { group: 0 }]);
    expect([acquire(0)[0] > 0, kept()]).toEqual([true, [false, true]]);
  });

  scenario(196)("comes from a whole parent of another group", () => {
    const { kept, acquire } = hostOf(1, [F(4, 2), F(4)], [{ group: 0 }, { group: 0 }]);
    expect([acquire(1)[0] > 0, kept()]).toEqual([true, [false, false]]);
  });

  scenario(527)("is made by as many evictions as it takes, in one scan a group", () => {
    const same = hostOf(2, [F(4, 2)], four);
    expect([same.acquire(0, 0, 0).includes(0), same.kept()]).toEqual([false, [false, false, false, true]]);
    expect(same.scans()).toEqual({ sameGroupScans: 1, crossGroupScans: 0 });
    const pinned = hostOf(2, [F(4)], [{ group: 0, held: true }, { group: 0 }]);
    expect(pinned.acquire(0, 0).map((block) => block > 0)).toEqual([true, false]);
    expect(pinned.scans()).toEqual({ sameGroupScans: 1, crossGroupScans: 1 });
    const scarce = hostOf(1, [F(4), F(4)], []);
    expect(scarce.acquire(1, 0).map((block) => block > 0)).toEqual([true, false]);
    const mixed = hostOf(2, [F(4, 2), F(4, 2)], four);
    const [a, b, c] = mixed.acquire(1, 1, 0);
    const pool = mixed.d.coordinator.host?.pool;
    expect(pool?.parentOf(1, a)).toBe(pool?.parentOf(1, b) as number);
    expect(pool?.parentOf(0, c)).not.toBe(pool?.parentOf(1, a) as number);
    expect(mixed.scans()).toEqual({ sameGroupScans: 2, crossGroupScans: 1 });
    const value = hostOf(2, [F(4), F(4), F(4)], [{ group: 0 }, { group: 1 }]);
    expect([value.acquire(2)[0] > 0, value.kept()]).toEqual([true, [false, true]]);
    const held1 = hostOf(1, [F(4, 2), F(4)], [{ group: 0 }, { group: 0, held: true }]);
    expect([held1.acquire(1), held1.kept()]).toEqual([[0], [true, true]]);
  });
});

describe("configurations", () => {
  const check = (setup: Partial<Setup>) => () =>
    validateConfig(configOf({ P: 128, pool: 31, T: 1024, groups: [F(128)], ...setup }));

  scenario(
    249,
    250,
    251,
    252,
    253,
    254,
    256,
  )("are refused by the rule that they break", () => {
    expect(check({})).not.toThrow();
    for (const P of [0, -1]) expect(check({ P })).toThrow("prefixGranularity");
    for (const K of [0, -1]) expect(check({ groups: [F(128, K)] })).toThrow("group 'g0'");
    expect(check({ groups: [F(48)] })).toThrow("group 'g0'");
    for (const w of [undefined, 0, -1]) {
      expect(
        check({ groups: [{ ...F(128), retention: "slidingWindow", slidingWindowTokens: w } as never] }),
      ).toThrow("group 'g0'");
    }
    expect(check({ T: 127, groups: [M(128)] })).toThrow("maxScheduledTokens");
    expect(check({ T: 128, groups: [M(128)] })).not.toThrow();
    expect(check({ groups: [{ ...M(128), retention: "slidingWindow", slidingWindowTokens: 4 }] })).toThrow(
      "state group",
    );
    expect(check({ groups: [] })).toThrow("at least one cache group");
    expect(check({ groups: [{ ...F(128, 3), shardCount: 2 }] })).toThrow("shardCount");
  });

  scenario(255)("of workers say what of a group travels", () => {
    const policy = (group: ReturnType<typeof F>, transferPolicy: string) => () =>
      validateConfig({
        ...configOf({ P: 128, pool: 31, T: 1024, groups: [group] }),
        role: "decode",
        cacheGroups: [{ groupId: "g0", ...group, transferPolicy: transferPolicy as never }],
      });
    for (const [group, good] of [
      [F(128), "fullSuffix"],
      [M(128), "latestSnapshot"],
    ] as const) {
      for (const choice of ["unspecified", "latestSnapshot", "fullSuffix"]) {
        if (choice === good) expect(policy(group, choice)).not.toThrow();
        else expect(policy(group, choice)).toThrow("transferPolicy");
      }
    }
  });
});

describe("a plan's batch", () => {
  scenario(
    105,
    106,
    107,
    108,
    109,
    110,
    111,
    258,
  )("pads rows, keeps holes and puts prompts first", () => {
    const d = new Driver({ P: 2, pool: 63, enableMixedPrefillDecode: true, groups: [F(2), W(4, 2)] });
    expect(d.plan().forward.rows).toEqual([]);
    d.submit("d", tokens(8));
    d.step();
    for (let i = 0; i < 3; i++) d.step();
    d.submit("p", tokens(2, 90));
    d.submit("q", tokens(3, 70));
    const plan = d.plan();
    expect(plan.forward.rows.map((row) => [row.requestId, row.slot, row.inputLength, row.isPrefill])).toEqual(
      [
        ["p", 2, 2, true],
        ["q", 3, 3, true],
        ["d", 1, 1, false],
      ],
    );
    expect(plan.forward.numPrefills).toBe(2);
    const [p, , decoder] = [0, 1, 2].map((row) => plan.blockTableRow(1, row));
    expect([p.length, decoder.length, p.slice(2)]).toEqual([decoder.length, 6, [-1, -1, -1, -1]]);
    expect([decoder[0], tableOf(plan, "p", 0).includes(0)]).toEqual([0, false]);
  });
});
