/**
 * Walks an EvictionOrder from the first to go to the last, without changing
 * it. The heap of epochs is walked in order with a small heap of its own
 * positions, so that looking at k epochs costs O(k log k) and pops nothing.
 */
import type { BlockId } from "../core/ids";
import { Int32List } from "../core/int32-list";
import type { EvictionOrder } from "./eviction-order";

export class EvictionCursor {
  readonly #order: EvictionOrder;
  /** Min-heap, by epoch, of heap positions whose parents were visited. */
  readonly #frontier = new Int32List(64);
  /** The entry under the cursor, 0 at the end. */
  block: BlockId = 0;

  constructor(order: EvictionOrder) {
    this.#order = order;
  }

  /** Starts over. The order must not change until the walk is over. */
  start(): void {
    this.#frontier.clear();
    if (this.#order.buckets.heapSize > 0) this.#push(0);
    this.block = 0;
    this.#nextBucket();
  }

  advance(): void {
    this.block = this.#order.after(this.block);
    if (this.block === 0) this.#nextBucket();
  }

  #nextBucket(): void {
    if (this.#frontier.length === 0) return;
    const position = this.#pop();
    const { heap, heapSize } = this.#order.buckets;
    if (position * 2 + 1 < heapSize) this.#push(position * 2 + 1);
    if (position * 2 + 2 < heapSize) this.#push(position * 2 + 2);
    this.block = this.#order.firstOf(heap[position]);
  }

  #epochAt(position: number): number {
    const { heap, epochs } = this.#order.buckets;
    return epochs[heap[position]];
  }

  #push(position: number): void {
    const frontier = this.#frontier;
    frontier.push(position);
    let index = frontier.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (this.#epochAt(frontier.items[parent]) <= this.#epochAt(position)) break;
      frontier.items[index] = frontier.items[parent];
      index = parent;
    }
    frontier.items[index] = position;
  }

  #pop(): number {
    const items = this.#frontier.items;
    const top = items[0];
    const size = --this.#frontier.length;
    const last = items[size];
    let index = 0;
    for (;;) {
      let child = index * 2 + 1;
      if (child >= size) break;
      if (child + 1 < size && this.#epochAt(items[child + 1]) < this.#epochAt(items[child])) child++;
      if (this.#epochAt(items[child]) >= this.#epochAt(last)) break;
      items[index] = items[child];
      index = child;
    }
    if (size > 0) items[index] = last;
    return top;
  }
}
