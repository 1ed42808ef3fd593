/**
 * The router on a device: tables and locations as kernels
 * read them, after plan upon plan, and the check of masks.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { maxPageTableUpdates } from "../../src/limits";
import { CacheGroupRouter, type RouterOptions } from "../../src/mapping/cache-group-router";
import { CacheArena } from "../../src/memory/cache-arena";
import { bind } from "../../src/recipes/bind";
import { cacheGroupConfigs } from "../../src/recipes/bridge";
import { plainCacheGroups, plainCacheLayout } from "../../src/recipes/plain";
import type { CacheGroupConfig } from "../../src/scheduler/config";
import { openCpuDevice } from "../support/cpu-device";
import { expectError } from "../support/expect-error";
import { decodeRow, type HandMadeRow, planOf, prefillRow, type TableChange } from "../support/hand-made-plan";
import { NaiveTables } from "../support/naive-tables";
import { Random } from "../support/random";

const device = openCpuDevice();
afterAll(() => device.close());

const granularity = 8;
const groups = plainCacheGroups({
  layerLabels: ["full_attention", "sliding_attention"],
  window: 20,
  numKvHeads: 2,
  headDim: 4,
  vHeadDim: 6,
  kvDtype: "float32",
  prefixGranularity: granularity,
});
const layout = plainCacheLayout(groups, granularity);
const memoryPlan = bind(layout, 400);
const configs = cacheGroupConfigs(
  groups.map(({ spec }) => spec),
  memoryPlan,
);
const causal = { windowLeft: -1 };

function routerWith(overrides: Partial<RouterOptions> = {}): CacheGroupRouter {
  const router = new CacheGroupRouter(device, layout, {
    groups: configs,
    maxBatchSize: 4,
    maxRows: 64,
    maxTokensPerRequest: 64,
    ...overrides,
  });
  router.attachArena(new CacheArena(device, memoryPlan));
  return router;
}

/** Pages of a slot as attention reads them. */
function pagesOf(router: CacheGroupRouter, layer: number, slot: number, count: number): number[] {
  const view = router.layerView(layer, layer === 0 ? causal : { windowLeft: 7 });
  const pages = new Int32Array(count);
  device.download(pages, view.pageTable + 4 * slot * view.pageTableWidth);
  return [...pages];
}

function locationsOf(router: CacheGroupRouter, layer: number, count: number): number[] {
  const locations = new Int32Array(count);
  device.download(locations, router.layerView(layer, { windowLeft: 0 }).locations);
  return [...locations];
}

const tokens = new Int32Array(64);
const grown = (length: number, ...appended: number[]): TableChange => ({ appended, length });

describe("block tables", () => {
  test("beyond their bound are refused before they are made", () => {
    const before = device.allocations.size;
    for (const overrides of [{ maxTokensPerRequest: 2e9 }, { maxBatchSize: 2 ** 26 }]) {
      expectError(() => routerWith(overrides), "invalid_option", "--max-model-len", "--max-num-seqs");
    }
    expect(device.allocations.size).toBe(before);
  });
});

describe("a layer's view", () => {
  test("steps by kernel pages when a block holds several", () => {
    const { kPageStrideBytes, vPageStrideBytes, pageSize } = routerWith({ kernelPageSize: 2 }).layerView(
      0,
      causal,
    );
    expect(pageSize).toBe(2);
    expect([kPageStrideBytes, vPageStrideBytes]).toEqual([2 * 2 * 4 * 4, 2 * 2 * 6 * 4]);
  });

  test("shares table and locations with the layers of its own group only", () => {
    const router = routerWith();
    const [full, sliding] = [router.layerView(0, causal), router.layerView(1, { windowLeft: 19 })];
    expect(router.layerView(0, { windowLeft: 3 }).pageTable).toBe(full.pageTable);
    expect(sliding.pageTable).not.toBe(full.pageTable);
    expect(sliding.locations).not.toBe(full.locations);
  });

  test("is refused to a mask that sees further back than its group keeps", () => {
    const router = routerWith();
    const texts = ["layer 1", "20 tokens", "'sliding_attention'"];
    expectError(() => router.layerView(1, causal), "invalid_mask", ...texts);
    expectError(() => router.layerView(1, { windowLeft: 20 }), "invalid_mask", ...texts);
    expect(router.layerView(1, { windowLeft: 19 }).mask).toEqual({ windowLeft: 19 });
    expect(router.layerView(0, { windowLeft: 500 }).mask).toEqual({ windowLeft: 500 });
  });

  test("is refused to a layer without a plan or a group", () => {
    expectError(() => routerWith().layerView(2, causal), "unplanned_field", "'layer.2.k'");
    const router = routerWith({ groups: configs.slice(0, 1) });
    expectError(() => router.layerView(1, { windowLeft: 0 }), "unknown_group", "layer 1");
  });
});

describe("applying a plan", () => {
  test("brings tables and locations of every group to the device", () => {
    const router = routerWith({ kernelPageSize: 4 });
    const prefill = {
      row: prefillRow({ slot: 3, tokens, size: 12 }),
      changes: [grown(2, 5, 9), grown(2, 0, 6)],
    };
    router.applyPlan(planOf([prefill]));
    expect(pagesOf(router, 0, 3, 4)).toEqual([10, 11, 18, 19]);
    expect(pagesOf(router, 1, 3, 4)).toEqual([0, 0, 12, 13]);
    expect(locationsOf(router, 0, 12)).toEqual([40, 41, 42, 43, 44, 45, 46, 47, 72, 73, 74, 75]);
    expect(locationsOf(router, 1, 12)).toEqual([-1, -1, -1, -1, -1, -1, -1, -1, 48, 49, 50, 51]);
  });

  test("lets re-fed rows write where a group is rebuilt from them, and nowhere else", () => {
    const replayable = configs.map(
      (config): CacheGroupConfig => ({ ...config, replayable: config.groupId === "sliding_attention" }),
    );
    const router = routerWith({ groups: replayable });
    const row = prefillRow({ slot: 1, tokens, begin: 8, size: 2, replay: 3, isFirstChunk: true });
    router.applyPlan(planOf([{ row, changes: [grown(2, 4, 7), grown(2, 3, 2)] }]));
    expect(locationsOf(router, 0, 5)).toEqual([-1, -1, -1, 56, 57]);
    expect(locationsOf(router, 1, 5)).toEqual([29, 30, 31, 16, 17]);
  });

  test("lets padding rows write nowhere", () => {
    const router = routerWith();
    const first = prefillRow({ slot: 1, tokens, size: 6 });
    router.applyPlan(planOf([{ row: first, changes: [grown(1, 4), grown(1, 3)] }]));
    const step = { row: decodeRow({ slot: 1, begin: 6, tokens }), changes: [grown(1), grown(1)] };
    router.applyPlan(planOf([step]), 4);
    expect(locationsOf(router, 0, 5)).toEqual([38, -1, -1, -1, 36]);
  });

  test("clears fresh blocks of the group they belong to", () => {
    const router = new CacheGroupRouter(device, layout, {
      groups: configs,
      maxBatchSize: 1,
      maxRows: 8,
      maxTokensPerRequest: 8,
    });
    const arena = new CacheArena(device, memoryPlan);
    router.attachArena(arena);
    const keys = ["layer.0.k", "layer.1.k"].map((fieldId) => arena.fieldView(fieldId));
    const firstFloat = (layer: number, block: number) => {
      const view = keys[layer] as (typeof keys)[number];
      return view.base + block * view.pageStrideBytes;
    };
    // The layers share a plane: block 2 of one group and block 2 of the other are the same bytes.
    for (const block of [2, 3, 4]) device.upload(firstFloat(0, block), Float32Array.of(1));
    router.applyPlan(planOf([], { blocksToZero: [[2], [4]] }));
    const left = [2, 3, 4].map((block) => {
      const value = new Float32Array(1);
      device.download(value, firstFloat(1, block));
      return value[0];
    });
    expect(left).toEqual([0, 1, 0]);
  });

  test("scatters more changes than fit in one go", () => {
    const width = 40_000;
    const router = routerWith({ maxTokensPerRequest: width, kernelPageSize: 1, maxRows: 8 });
    const blocks = Array.from({ length: width / granularity }, (_, i) => 1 + (i % 400));
    expect(blocks.length * granularity).toBeGreaterThan(2 * maxPageTableUpdates);
    const row = prefillRow({ slot: 2, tokens, size: 1 });
    router.applyPlan(planOf([{ row, changes: [grown(blocks.length, ...blocks), grown(1, 1)] }]));
    const expected = blocks.flatMap((block) =>
      Array.from({ length: granularity }, (_, page) => block * granularity + page),
    );
    expect(pagesOf(router, 0, 2, width)).toEqual(expected);
  });

  test("before the arena is known is a broken promise", () => {
    const options = { groups: configs, maxBatchSize: 1, maxRows: 8, maxTokensPerRequest: 8 };
    expect(() => new CacheGroupRouter(device, layout, options).applyPlan(planOf([]))).toThrow("arena");
  });
});

describe("against plain lists", () => {
  test("pages and locations agree through hundreds of random plans", () => {
    const random = new Random(11);
    const router = routerWith({ kernelPageSize: 4, maxRows: 256 });
    const twins = [new NaiveTables(), new NaiveTables()];
    for (let step = 0; step < 300; step++) {
      const slots = random.shuffled([1, 2, 3, 4]).slice(0, random.integer(1, 4));
      const rows = slots.map((slot) => randomRow(random, twins, slot));
      router.applyPlan(planOf(rows));
      const written = rows.reduce((sum, { row }) => sum + row.inputLength, 0);
      twins.forEach((twin, layer) => {
        const expected = rows.flatMap(({ row }) =>
          Array.from({ length: row.size }, (_, i) => twin.locationOf(row.slot, row.begin + i, granularity)),
        );
        expect(locationsOf(router, layer, written)).toEqual(expected);
        for (const slot of slots) {
          const pages = twin.tableOf(slot).flatMap((id) => (id === 0 ? [0, 0] : [2 * id, 2 * id + 1]));
          expect(pagesOf(router, layer, slot, pages.length)).toEqual(pages);
        }
      });
    }
  });
});

/** A prefill chunk on fresh or grown tables, told to the twins as well. */
function randomRow(random: Random, twins: readonly NaiveTables[], slot: number): HandMadeRow {
  const before = twins[0]?.tableOf(slot).length ?? 0;
  const isFirstChunk = before === 0 || before > 5 || random.isHeads(0.2);
  const kept = isFirstChunk ? 0 : before;
  const added = random.integer(1, 3);
  const changes = twins.map((twin): TableChange => {
    const begin = random.integer(0, kept);
    const change: TableChange = {
      replaced: kept > 0 ? [[random.integer(0, kept - 1), random.integer(1, 399)]] : [],
      nulled: [begin, random.integer(begin, kept)],
      appended: Array.from({ length: added }, () => (random.isHeads(0.1) ? 0 : random.integer(1, 399))),
      length: kept + added,
    };
    twin.apply(slot, isFirstChunk, change);
    return change;
  });
  const begin = kept * granularity;
  const size = random.integer(1, added * granularity);
  return { row: prefillRow({ slot, tokens, begin, size, isFirstChunk }), changes };
}
