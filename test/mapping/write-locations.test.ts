/** Where new tokens' keys and values go, by the slot's own table. */
import { describe, expect, test } from "bun:test";
import { SlotTables } from "../../src/mapping/slot-tables";
import { writeLocations } from "../../src/mapping/write-locations";
import { prefillRow, tableChanges } from "../support/hand-made-plan";

/** Tables of slots 1, 2, ... with these blocks. */
function tablesOf(blocks: readonly (readonly number[])[]): SlotTables {
  const tables = new SlotTables({ maxBatchSize: blocks.length, maxBlocks: 8, pagesPerBlock: 1 });
  const rows = blocks.map((_, i) => prefillRow({ slot: i + 1, tokens: new Int32Array(1) }));
  const changes = tableChanges(blocks.map((ids) => ({ appended: ids, length: ids.length })));
  tables.apply({ rows, numPrefills: rows.length, tableChanges: [] }, changes, { set: () => {} });
  return tables;
}

function locations(tables: SlotTables, granularity: number, slot: number, begin: number, count: number) {
  const out = new Int32Array(count);
  writeLocations(tables, granularity, slot, begin, count, out, 0);
  return [...out];
}

describe("locations", () => {
  test("count through the blocks of the slot, whatever their order", () => {
    const tables = tablesOf([
      [1, 7],
      [2, 4],
    ]);
    expect(locations(tables, 4, 1, 0, 3)).toEqual([4, 5, 6]);
    expect(locations(tables, 4, 2, 0, 8)).toEqual([8, 9, 10, 11, 16, 17, 18, 19]);
    expect(locations(tables, 4, 1, 5, 1)).toEqual([29]);
  });

  test("follow each group's own block span", () => {
    expect(locations(tablesOf([[5, 6]]), 4, 1, 3, 3)).toEqual([23, 24, 25]);
    expect(locations(tablesOf([[5, 6]]), 16, 1, 3, 3)).toEqual([83, 84, 85]);
  });

  test("are nowhere in a hole", () => {
    expect(locations(tablesOf([[0, 3, 0]]), 2, 1, 0, 6)).toEqual([-1, -1, 6, 7, -1, -1]);
  });

  test("leave what lies around them alone", () => {
    const out = new Int32Array(6).fill(99);
    writeLocations(tablesOf([[3]]), 4, 1, 1, 2, out, 3);
    expect([...out]).toEqual([99, 99, 99, 13, 14, 99]);
  });

  test("outside the table are a broken promise", () => {
    const tables = tablesOf([[1, 2]]);
    expect(locations(tables, 4, 1, 7, 1)).toEqual([11]);
    expect(() => locations(tables, 4, 1, 7, 2)).toThrow("positions 7..8 of slot 1 lie outside its table");
    expect(() => locations(tables, 4, 1, -1, 1)).toThrow("outside its table");
    expect(() => locations(tables, 4, 0, 0, 1)).toThrow("outside its table");
  });
});
