/**
 * One request's blocks in one group: a slot a span, 0 where nothing is kept. A
 * container; GroupAllocator is its only writer. Remembers what changed since
 * the last plan, because executors apply changes and never reread a table.
 */

import type { BlockId } from "./ids";
import type { Int32BufferPool } from "./int32-buffer-pool";
import { Int32List } from "./int32-list";

const noSlots = new Int32Array(0);

export class BlockTable {
  #slots: Int32Array = noSlots;
  #length = 0;
  /** Stored for the owner, never computed here. */
  availableTokens = 0;
  /** Slots below are reclaimed for good. */
  reclaimedBlocks = 0;

  /** Changes since `clearChanges`: slots from here on are new, */
  appendedFrom = 0;
  /** these were nulled, */
  nulledBegin = 0;
  nulledEnd = 0;
  /** and these (column, id) pairs were exchanged. */
  readonly replaced = new Int32List(0);

  get length(): number {
    return this.#length;
  }

  at(slot: number): BlockId {
    return this.#slots[slot];
  }

  /** The first `length` entries are the table. */
  get slots(): Int32Array {
    return this.#slots;
  }

  /** Makes room for `count` more slots, so that appending them never moves the table. */
  reserve(count: number, buffers: Int32BufferPool): void {
    this.#slots = buffers.grow(this.#slots, this.#length, this.#length + count);
  }

  append(block: BlockId, buffers: Int32BufferPool): void {
    if (this.#length === this.#slots.length) {
      this.#slots = buffers.grow(this.#slots, this.#length, this.#length + 1);
    }
    this.#slots[this.#length++] = block;
  }

  replace(slot: number, block: BlockId): void {
    this.#slots[slot] = block;
    this.replaced.push(slot);
    this.replaced.push(block);
  }

  /** Notes that [begin, end) become holes. */
  nullRange(begin: number, end: number): void {
    for (let slot = begin; slot < end; slot++) this.#slots[slot] = 0;
    if (this.nulledBegin === this.nulledEnd) this.nulledBegin = begin;
    this.nulledEnd = end;
  }

  clearChanges(): void {
    this.appendedFrom = this.#length;
    this.nulledBegin = 0;
    this.nulledEnd = 0;
    this.replaced.clear();
  }

  /** Forgets everything; the blocks must have been released. */
  reset(buffers: Int32BufferPool): void {
    buffers.give(this.#slots);
    this.#slots = noSlots;
    this.#length = 0;
    this.availableTokens = 0;
    this.reclaimedBlocks = 0;
    this.clearChanges();
  }
}
