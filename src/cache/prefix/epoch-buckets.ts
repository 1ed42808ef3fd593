/**
 * Entries grouped by access epoch: numbered buckets, a table that finds an
 * epoch's bucket, and a heap of the buckets that have something to evict.
 * Epochs are issued in sequence, so their low bits are a good hash as they are.
 */
import { assert } from "../../assert";

export class EpochBuckets {
  readonly epochs: Float64Array;
  readonly #numEntries: Int32Array;
  #freeIds: Int32Array;
  #numFreeIds = 0;
  #nextId = 0;
  /** Entries come in runs of one epoch. */
  #lastEntered = 0;
  /** Open addressing over bucket ids + 1. */
  readonly #slots: Int32Array;
  readonly #mask: number;
  /** Binary min-heap of bucket ids by epoch. */
  readonly heap: Int32Array;
  readonly #heapPositions: Int32Array;
  heapSize = 0;

  constructor(maxBuckets: number) {
    this.epochs = new Float64Array(maxBuckets);
    this.#numEntries = new Int32Array(maxBuckets);
    this.#freeIds = new Int32Array(maxBuckets);
    this.heap = new Int32Array(maxBuckets);
    this.#heapPositions = new Int32Array(maxBuckets);
    const capacity = 2 ** Math.ceil(Math.log2(Math.max(2, maxBuckets * 2)));
    this.#slots = new Int32Array(capacity);
    this.#mask = capacity - 1;
  }

  /** The bucket of an epoch, made when there is none, with `count` more entries. */
  enter(epoch: number, count = 1): number {
    const last = this.#lastEntered;
    if (this.#numEntries[last] > 0 && this.epochs[last] === epoch) {
      this.#numEntries[last] += count;
      return last;
    }
    this.#lastEntered = this.#find(epoch, count);
    return this.#lastEntered;
  }

  #find(epoch: number, count: number): number {
    let slot = (epoch | 0) & this.#mask;
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & this.#mask) {
      const bucket = this.#slots[slot] - 1;
      if (this.epochs[bucket] === epoch) {
        this.#numEntries[bucket] += count;
        return bucket;
      }
    }
    const bucket = this.#numFreeIds > 0 ? this.#freeIds[--this.#numFreeIds] : this.#nextId++;
    this.#slots[slot] = bucket + 1;
    this.epochs[bucket] = epoch;
    this.#numEntries[bucket] = count;
    return bucket;
  }

  /** `count` entries leave; the last one frees the bucket, which must be out of the heap. */
  leave(bucket: number, count = 1): void {
    this.#numEntries[bucket] -= count;
    if (count === 0 || this.#numEntries[bucket] > 0) return;
    let slot = (this.epochs[bucket] | 0) & this.#mask;
    while (this.#slots[slot] !== bucket + 1) slot = (slot + 1) & this.#mask;
    this.#closeGap(slot);
    this.#freeIds[this.#numFreeIds++] = bucket;
  }

  pushHeap(bucket: number): void {
    this.#siftUp(this.heapSize++, bucket);
  }

  removeFromHeap(bucket: number): void {
    const position = this.#heapPositions[bucket];
    assert(this.heap[position] === bucket, "a bucket is not where the heap says");
    const last = this.heap[--this.heapSize];
    if (last === bucket) return;
    const parent = (position - 1) >> 1;
    if (position > 0 && this.epochs[last] < this.epochs[this.heap[parent]]) this.#siftUp(position, last);
    else this.#siftDown(position, last);
  }

  #siftUp(start: number, bucket: number): void {
    let position = start;
    const epoch = this.epochs[bucket];
    while (position > 0) {
      const parent = (position - 1) >> 1;
      const above = this.heap[parent];
      if (this.epochs[above] <= epoch) break;
      this.#put(position, above);
      position = parent;
    }
    this.#put(position, bucket);
  }

  #siftDown(start: number, bucket: number): void {
    let position = start;
    const epoch = this.epochs[bucket];
    for (;;) {
      let child = position * 2 + 1;
      if (child >= this.heapSize) break;
      if (child + 1 < this.heapSize && this.epochs[this.heap[child + 1]] < this.epochs[this.heap[child]])
        child++;
      if (this.epochs[this.heap[child]] >= epoch) break;
      this.#put(position, this.heap[child]);
      position = child;
    }
    this.#put(position, bucket);
  }

  #put(position: number, bucket: number): void {
    this.heap[position] = bucket;
    this.#heapPositions[bucket] = position;
  }

  /** Moves later members of a probe run into the gap at `slot`. */
  #closeGap(start: number): void {
    let gap = start;
    let slot = start;
    for (;;) {
      slot = (slot + 1) & this.#mask;
      const entry = this.#slots[slot];
      if (entry === 0) break;
      const home = (this.epochs[entry - 1] | 0) & this.#mask;
      if (((slot - home) & this.#mask) >= ((slot - gap) & this.#mask)) {
        this.#slots[gap] = entry;
        gap = slot;
      }
    }
    this.#slots[gap] = 0;
  }
}
