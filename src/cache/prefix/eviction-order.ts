/**
 * The order in which one group's cache entries may go: by access epoch, then class, then rank, then block id.
 * Only entries that nobody but the index owns are in it. Decides nothing about how many go.
 */
import type { BlockId } from "../core/ids";
import { Int32List } from "../core/int32-list";
import { EpochBuckets } from "./epoch-buckets";

/** Entries of a lower class go first within an epoch. */
export type EvictionClass = 0 | 1;

const unlinked = 255;

export class EvictionOrder {
  readonly buckets: EpochBuckets;
  readonly #bucketOf: Int32Array;
  readonly #ranks: Int32Array;
  readonly #classes: Uint8Array;
  readonly #previous: Int32Array;
  readonly #next: Int32Array;
  /** Per bucket and class. */
  readonly #heads: Int32Array;
  readonly #tails: Int32Array;
  readonly #isUnsorted: Uint8Array;
  readonly #sortScratch = new Int32List(0);
  #numLinked = 0;

  constructor(maxBlocks: number) {
    this.buckets = new EpochBuckets(maxBlocks + 1);
    this.#bucketOf = new Int32Array(maxBlocks + 1);
    this.#ranks = new Int32Array(maxBlocks + 1);
    this.#classes = new Uint8Array(maxBlocks + 1).fill(unlinked);
    this.#previous = new Int32Array(maxBlocks + 1);
    this.#next = new Int32Array(maxBlocks + 1);
    this.#heads = new Int32Array((maxBlocks + 1) * 2);
    this.#tails = new Int32Array((maxBlocks + 1) * 2);
    this.#isUnsorted = new Uint8Array((maxBlocks + 1) * 2);
  }

  /** Entries that could be evicted now. */
  get numLinked(): number {
    return this.#numLinked;
  }

  epochOf(block: BlockId): number {
    return this.buckets.epochs[this.#bucketOf[block]];
  }

  classOf(block: BlockId): EvictionClass {
    return this.#classes[block] as EvictionClass;
  }

  rankOf(block: BlockId): number {
    return this.#ranks[block];
  }

  isLinked(block: BlockId): boolean {
    return this.#classes[block] !== unlinked;
  }

  /** A new entry of this epoch; not yet evictable. */
  enter(block: BlockId, epoch: number): void {
    this.#bucketOf[block] = this.buckets.enter(epoch);
  }

  /** An unlinked entry is gone. */
  leave(block: BlockId): void {
    this.buckets.leave(this.#bucketOf[block]);
  }

  /** An unlinked entry changes its epoch. */
  changeEpoch(block: BlockId, epoch: number): void {
    if (this.epochOf(block) === epoch) return;
    this.leave(block);
    this.enter(block, epoch);
  }

  /** The same for the blocks among `blocks[0, length)`, 0 being none: neighbours mostly share an epoch. */
  changeEpochs(blocks: Int32Array, length: number, epoch: number): void {
    const bucket = this.buckets.enter(epoch, length);
    let numNone = 0;
    let run = 0;
    let runBucket = bucket;
    for (let i = 0; i < length; i++) {
      const block = blocks[i];
      if (block === 0) {
        numNone++;
        continue;
      }
      const old = this.#bucketOf[block];
      if (old !== runBucket) {
        this.buckets.leave(runBucket, run);
        runBucket = old;
        run = 0;
      }
      run++;
      this.#bucketOf[block] = bucket;
    }
    this.buckets.leave(runBucket, run);
    this.buckets.leave(bucket, numNone);
  }

  /** Makes an entry evictable. Releases come in order nearly always, so one end or the other takes it. */
  link(block: BlockId, evictionClass: EvictionClass, rank: number): void {
    const bucket = this.#bucketOf[block];
    const list = bucket * 2 + evictionClass;
    this.#classes[block] = evictionClass;
    this.#ranks[block] = rank;
    this.#numLinked++;
    const head = this.#heads[list];
    const tail = this.#tails[list];
    if (head === 0) {
      if (this.#heads[bucket * 2 + 1 - evictionClass] === 0) this.buckets.pushHeap(bucket);
      this.#isUnsorted[list] = 0;
      this.#heads[list] = block;
      this.#tails[list] = block;
      this.#previous[block] = 0;
      this.#next[block] = 0;
    } else if (this.#comesBefore(tail, block) || !this.#comesBefore(block, head)) {
      if (!this.#comesBefore(tail, block)) this.#isUnsorted[list] = 1;
      this.#next[tail] = block;
      this.#previous[block] = tail;
      this.#next[block] = 0;
      this.#tails[list] = block;
    } else {
      this.#previous[head] = block;
      this.#next[block] = head;
      this.#previous[block] = 0;
      this.#heads[list] = block;
    }
  }

  unlink(block: BlockId): void {
    const bucket = this.#bucketOf[block];
    const list = bucket * 2 + this.#classes[block];
    const previous = this.#previous[block];
    const next = this.#next[block];
    if (previous === 0) this.#heads[list] = next;
    else this.#next[previous] = next;
    if (next === 0) this.#tails[list] = previous;
    else this.#previous[next] = previous;
    this.#classes[block] = unlinked;
    this.#numLinked--;
    if (this.#heads[bucket * 2] === 0 && this.#heads[bucket * 2 + 1] === 0)
      this.buckets.removeFromHeap(bucket);
  }

  /** The entry that goes first in a bucket, 0 when the bucket has none. */
  firstOf(bucket: number): BlockId {
    const first = this.#firstOfClass(bucket * 2);
    return first !== 0 ? first : this.#firstOfClass(bucket * 2 + 1);
  }

  /** The entry behind `block` in its bucket, 0 at the end. */
  after(block: BlockId): BlockId {
    const next = this.#next[block];
    if (next !== 0 || this.#classes[block] === 1) return next;
    return this.#firstOfClass(this.#bucketOf[block] * 2 + 1);
  }

  #firstOfClass(list: number): BlockId {
    if (this.#heads[list] !== 0 && this.#isUnsorted[list] === 1) this.#sort(list);
    return this.#heads[list];
  }

  #comesBefore(a: BlockId, b: BlockId): boolean {
    const difference = this.#ranks[a] - this.#ranks[b];
    return difference < 0 || (difference === 0 && a < b);
  }

  #sort(list: number): void {
    const scratch = this.#sortScratch;
    scratch.clear();
    for (let block = this.#heads[list]; block !== 0; block = this.#next[block]) scratch.push(block);
    const sorted = scratch.items.subarray(0, scratch.length);
    sorted.sort((a, b) => this.#ranks[a] - this.#ranks[b] || a - b);
    let previous = 0;
    for (const block of sorted) {
      this.#previous[block] = previous;
      if (previous === 0) this.#heads[list] = block;
      else this.#next[previous] = block;
      previous = block;
    }
    this.#next[previous] = 0;
    this.#tails[list] = previous;
    this.#isUnsorted[list] = 0;
  }
}
