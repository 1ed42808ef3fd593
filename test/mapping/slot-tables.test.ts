/**
 * Block tables of the slots: a plan's changes in the order
 * it prescribes, and the same changes as kernel pages.
 */
import { describe, expect, test } from "bun:test";
import { SlotTables } from "../../src/mapping/slot-tables";
import { prefillRow, type TableChange, tableChanges } from "../support/hand-made-plan";
import { NaiveTables } from "../support/naive-tables";
import { Random } from "../support/random";

const tokens = new Int32Array(1);

/** Tables with the page table they describe. */
class Bench {
  readonly tables: SlotTables;
  readonly pages: Int32Array;

  constructor(geometry: SlotTables["geometry"]) {
    this.tables = new SlotTables(geometry);
    this.pages = new Int32Array((geometry.maxBatchSize + 1) * this.tables.pageTableWidth);
  }

  apply(rows: readonly { slot: number; first?: boolean; change: TableChange }[]): void {
    const batch = {
      rows: rows.map(({ slot, first }) => prefillRow({ slot, tokens, isFirstChunk: first ?? false })),
      numPrefills: rows.length,
      tableChanges: [],
    };
    const sink = {
      set: (index: number, page: number) => {
        this.pages[index] = page;
      },
    };
    this.tables.apply(batch, tableChanges(rows.map(({ change }) => change)), sink);
  }

  blocksOf(slot: number): number[] {
    return Array.from({ length: this.tables.lengthOf(slot) }, (_, column) =>
      this.tables.blockAt(slot, column),
    );
  }

  pagesOf(slot: number): number[] {
    const { pageTableWidth, geometry } = this.tables;
    const count = this.tables.lengthOf(slot) * geometry.pagesPerBlock;
    return [...this.pages.subarray(slot * pageTableWidth, slot * pageTableWidth + count)];
  }
}

const small = { maxBatchSize: 2, maxBlocks: 4, pagesPerBlock: 1 };

describe("applying a plan's changes", () => {
  test("appends, and empties the table on a first chunk", () => {
    const bench = new Bench(small);
    bench.apply([{ slot: 1, first: true, change: { appended: [5, 0, 7], length: 3 } }]);
    expect(bench.blocksOf(1)).toEqual([5, 0, 7]);
    bench.apply([{ slot: 1, change: { appended: [9], length: 4 } }]);
    expect(bench.blocksOf(1)).toEqual([5, 0, 7, 9]);
    bench.apply([{ slot: 1, first: true, change: { appended: [3], length: 1 } }]);
    expect(bench.blocksOf(1)).toEqual([3]);
  });

  test("replaces before it nulls and nulls before it appends", () => {
    const bench = new Bench(small);
    bench.apply([{ slot: 2, first: true, change: { appended: [1, 2], length: 2 } }]);
    bench.apply([
      {
        slot: 2,
        change: {
          replaced: [
            [0, 8],
            [1, 9],
          ],
          nulled: [0, 1],
          appended: [4],
          length: 3,
        },
      },
    ]);
    expect(bench.blocksOf(2)).toEqual([0, 9, 4]);
    expect(bench.pagesOf(2)).toEqual([0, 9, 4]);
  });

  test("keeps the slots apart, in the batch's order", () => {
    const bench = new Bench(small);
    bench.apply([
      { slot: 2, first: true, change: { appended: [6, 7], length: 2 } },
      { slot: 1, first: true, change: { appended: [5], length: 1 } },
    ]);
    expect([bench.blocksOf(1), bench.blocksOf(2)]).toEqual([[5], [6, 7]]);
  });

  test("stops when the table's length is not what the plan says", () => {
    const bench = new Bench(small);
    expect(() => bench.apply([{ slot: 1, first: true, change: { appended: [5], length: 2 } }])).toThrow(
      "the table of slot 1 has 1 blocks, the plan says 2",
    );
  });

  test("stops rather than write outside the slot's own table", () => {
    const bench = new Bench(small);
    bench.apply([{ slot: 1, first: true, change: { appended: [5, 6], length: 2 } }]);
    expect(() => bench.apply([{ slot: 1, change: { appended: [1, 2, 3], length: 5 } }])).toThrow(
      "outgrows 4",
    );
    expect(() => bench.apply([{ slot: 2, change: { replaced: [[0, 3]], length: 0 } }])).toThrow("column 0");
    expect(() => bench.apply([{ slot: 2, change: { nulled: [0, 1], length: 0 } }])).toThrow("column 0");
    expect(() => bench.tables.blockAt(2, 0)).toThrow("column 0");
    expect(() => bench.tables.blockAt(1, -1)).toThrow("column -1");
  });
});

describe("kernel pages", () => {
  test("count through each block, and a hole stays a hole", () => {
    const bench = new Bench({ maxBatchSize: 1, maxBlocks: 3, pagesPerBlock: 2 });
    bench.apply([{ slot: 1, first: true, change: { appended: [3, 5, 0], length: 3 } }]);
    expect(bench.pagesOf(1)).toEqual([6, 7, 10, 11, 0, 0]);
  });

  test("are the blocks themselves when the sizes match", () => {
    const bench = new Bench({ maxBatchSize: 1, maxBlocks: 3, pagesPerBlock: 1 });
    bench.apply([{ slot: 1, first: true, change: { appended: [3, 5, 0], length: 3 } }]);
    expect(bench.pagesOf(1)).toEqual([3, 5, 0]);
  });
});

/** A change that a scheduler could ask for of a table of this length. */
function randomChange(random: Random, before: number, maxBlocks: number): TableChange {
  const id = () => (random.isHeads(0.15) ? 0 : random.integer(1, 999));
  const begin = random.integer(0, before);
  const appended = Array.from({ length: random.integer(0, Math.min(3, maxBlocks - before)) }, id);
  return {
    replaced: Array.from({ length: before > 0 ? random.integer(0, 2) : 0 }, () => [
      random.integer(0, before - 1),
      id(),
    ]),
    nulled: [begin, random.integer(begin, before)],
    appended,
    length: before + appended.length,
  };
}

describe("against plain lists", () => {
  test("every token keeps its place in both tables through thousands of random changes", () => {
    for (const seed of [1, 2, 3, 4]) {
      const random = new Random(seed);
      const kernelPageSize = random.pick([1, 2, 4]);
      const pagesPerBlock = random.pick([1, 2, 3, 4]);
      const blockGranularity = kernelPageSize * pagesPerBlock;
      const bench = new Bench({ maxBatchSize: 5, maxBlocks: 12, pagesPerBlock });
      const twin = new NaiveTables();
      for (let step = 0; step < 400; step++) {
        const slots = random.shuffled([1, 2, 3, 4, 5]).slice(0, random.integer(1, 5));
        const rows = slots.map((slot) => {
          const first = random.isHeads(0.2) || twin.tableOf(slot).length > 9;
          const change = randomChange(random, first ? 0 : twin.tableOf(slot).length, 12);
          return { slot, first, change };
        });
        bench.apply(rows);
        for (const { slot, first, change } of rows) twin.apply(slot, first, change);
        for (const slot of slots) expectSamePlaces(bench, twin, slot, blockGranularity, kernelPageSize);
      }
    }
  });
});

function expectSamePlaces(bench: Bench, twin: NaiveTables, slot: number, block: number, page: number): void {
  expect(bench.blocksOf(slot)).toEqual([...twin.tableOf(slot)]);
  const pages = bench.pagesOf(slot);
  const byPage = Array.from({ length: twin.tableOf(slot).length * block }, (_, token) => {
    const entry = pages[Math.floor(token / page)] ?? -1;
    return entry === 0 ? -1 : entry * page + (token % page);
  });
  expect(byPage).toEqual(byPage.map((_, token) => twin.locationOf(slot, token, block)));
}
