/**
 * The block tables of every request slot and group, kept by applying a plan's changes and nothing else; hands
 * the same changes on as kernel pages. Holds ids, not references: ownership is the scheduler's.
 */
import { broken } from "../assert";
import type { ForwardBatch, GroupTableChanges } from "../scheduler/plan";

/** Receives changed entries of a group's page table: row = slot, column counts kernel pages. */
export interface PageTableSink {
  set(index: number, page: number): void;
}

export interface SlotTableGeometry {
  /** Slots are 1..maxBatchSize; row 0 stays empty. */
  readonly maxBatchSize: number;
  /** Blocks of the longest table. */
  readonly maxBlocks: number;
  /** Kernel pages a block. */
  readonly pagesPerBlock: number;
}

/** One group's tables. */
export class SlotTables {
  readonly geometry: SlotTableGeometry;
  /** Entries in one row of the page table. */
  readonly pageTableWidth: number;
  readonly #blocks: Int32Array;
  readonly #lengths: Int32Array;

  constructor(geometry: SlotTableGeometry) {
    this.geometry = geometry;
    this.pageTableWidth = geometry.maxBlocks * geometry.pagesPerBlock;
    this.#blocks = new Int32Array((geometry.maxBatchSize + 1) * geometry.maxBlocks);
    this.#lengths = new Int32Array(geometry.maxBatchSize + 1);
  }

  lengthOf(slot: number): number {
    return this.#lengths[slot] as number;
  }

  /** Block at a column; 0 is a hole. */
  blockAt(slot: number, column: number): number {
    if (column < 0 || column >= (this.#lengths[slot] as number))
      broken(`column ${column} is outside the table of slot ${slot}`);
    return this.#blocks[slot * this.geometry.maxBlocks + column] as number;
  }

  /** Applies one group's changes of every row of the batch, in the order the plan prescribes. */
  apply(batch: ForwardBatch, changes: GroupTableChanges, sink: PageTableSink): void {
    for (let row = 0; row < batch.rows.length; row++) {
      const { slot, isFirstChunk } = batch.rows[row] as ForwardBatch["rows"][number];
      const length = changes.tableLengths[row];
      if (isFirstChunk) this.#lengths[slot] = 0;
      this.#applyRow(slot, row, changes, sink);
      if (this.#lengths[slot] !== length)
        broken(`the table of slot ${slot} has ${this.#lengths[slot]} blocks, the plan says ${length}`);
    }
  }

  #applyRow(slot: number, row: number, changes: GroupTableChanges, sink: PageTableSink): void {
    const next = row + 1;
    for (let k = changes.replacedOffsets[row] as number; k < (changes.replacedOffsets[next] as number); k++) {
      this.#write(slot, changes.replacedColumns[k] as number, changes.replacedIds[k] as number, sink);
    }
    for (
      let column = changes.nulledBegins[row] as number;
      column < (changes.nulledEnds[row] as number);
      column++
    ) {
      this.#write(slot, column, 0, sink);
    }
    for (let k = changes.appendedOffsets[row] as number; k < (changes.appendedOffsets[next] as number); k++) {
      const column = this.#lengths[slot] as number;
      if (column >= this.geometry.maxBlocks)
        broken(`the table of slot ${slot} outgrows ${this.geometry.maxBlocks} blocks`);
      this.#lengths[slot] = column + 1;
      this.#write(slot, column, changes.appendedIds[k] as number, sink);
    }
  }

  #write(slot: number, column: number, block: number, sink: PageTableSink): void {
    const { maxBlocks, pagesPerBlock } = this.geometry;
    if (column < 0 || column >= (this.#lengths[slot] as number))
      broken(`column ${column} is outside the table of slot ${slot}`);
    this.#blocks[slot * maxBlocks + column] = block;
    const first = slot * this.pageTableWidth + column * pagesPerBlock;
    for (let page = 0; page < pagesPerBlock; page++) {
      sink.set(first + page, block === 0 ? 0 : block * pagesPerBlock + page);
    }
  }
}
