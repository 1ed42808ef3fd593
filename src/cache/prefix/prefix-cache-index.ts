/**
 * What is reusable of one group in one tier: CacheKey (digest, page offset) to its canonical block. An entry
 * is metadata and one ownership of a block that exists already; registering neither allocates nor copies. The
 * same class serves the Device and the Host tier.
 */
import { assert, broken } from "../../assert";
import type { CacheBlockRefs, SoleOwnerObserver } from "../core/cache-block-refs";
import type { BlockId, GroupId } from "../core/ids";
import { DigestStore, DigestTable } from "./digest-table";
import { type EvictionClass, EvictionOrder } from "./eviction-order";

/** Why a boundary was cached. A later registration can raise a kind, never lower it. */
export const boundaryKind = { chunk: 0, endpoint: 1, promoted: 2 } as const;
export type BoundaryKind = (typeof boundaryKind)[keyof typeof boundaryKind];

/** How the entries of an index are ranked for eviction. */
export type IndexRanking = "prefixClosed" | "open" | "host";

/** Told about every entry that comes or goes. */
export interface CacheMutationSink {
  entryAdded(group: GroupId, digests: Int32Array, at: number): void;
  entryRemoved(group: GroupId, digests: Int32Array, at: number): void;
}

const cachedBit = 4;
const acquiredBit = 8;
const deviceOnlyBit = 16;
const kindMask = 3;

export class PrefixCacheIndex implements SoleOwnerObserver {
  readonly refs: CacheBlockRefs;
  readonly digests: DigestStore;
  readonly #ranking: IndexRanking;
  readonly #table: DigestTable;
  readonly #flags: Uint8Array;
  readonly #logicalIndexes: Int32Array;
  /** Eviction order; on Host the entries that were hit have one of their own, which goes last. */
  readonly order: EvictionOrder;
  readonly acquiredOrder: EvictionOrder;
  readonly #sink: CacheMutationSink | undefined;

  constructor(refs: CacheBlockRefs, ranking: IndexRanking, sink?: CacheMutationSink) {
    const maxBlocks = refs.pool.numLcmBlocks * refs.pool.packingOf(refs.group);
    this.refs = refs;
    this.#ranking = ranking;
    this.#sink = sink;
    this.digests = new DigestStore(maxBlocks);
    this.#table = new DigestTable(this.digests, maxBlocks);
    this.#flags = new Uint8Array(maxBlocks + 1);
    this.#logicalIndexes = new Int32Array(maxBlocks + 1);
    this.order = new EvictionOrder(maxBlocks);
    this.acquiredOrder = ranking === "host" ? new EvictionOrder(maxBlocks) : this.order;
    refs.observe(this);
  }

  get numEntries(): number {
    return this.#table.size;
  }

  /** Entries that nobody but the index owns. */
  get numIdle(): number {
    return this.order.numLinked + (this.acquiredOrder === this.order ? 0 : this.acquiredOrder.numLinked);
  }

  /** The canonical block of a key, 0 on a miss. Changes nothing. */
  find(digests: Int32Array, at: number, pageOffset: number): BlockId {
    return this.#table.find(digests, at, pageOffset);
  }

  isCached(block: BlockId): boolean {
    return (this.#flags[block] & cachedBit) !== 0;
  }

  kindOf(block: BlockId): BoundaryKind {
    return (this.#flags[block] & kindMask) as BoundaryKind;
  }

  wasAcquired(block: BlockId): boolean {
    return (this.#flags[block] & acquiredBit) !== 0;
  }

  epochOf(block: BlockId): number {
    return this.#orderOf(block).epochOf(block);
  }

  /** Says whether an entry is worth a place on Host; a new one is. */
  setWorthHost(block: BlockId, isWorthHost: boolean): void {
    if (isWorthHost) this.#flags[block] &= ~deviceOnlyBit;
    else this.#flags[block] |= deviceOnlyBit;
  }

  isWorthHost(block: BlockId): boolean {
    return (this.#flags[block] & deviceOnlyBit) === 0;
  }

  /** Whether a cached block is owned by the index alone. */
  isIdle(block: BlockId): boolean {
    return this.isCached(block) && this.refs.ownersOf(block) === 1;
  }

  /** Eviction tier of an entry: 1 probationary boundary, 2 established boundary, 3 closed prefix. */
  tierOf(block: BlockId): number {
    if (this.#ranking === "prefixClosed") return 3;
    return this.#classOf(block) === 0 ? 1 : 2;
  }

  /** Place among entries of equal epoch and tier; lower goes first. */
  positionRankOf(block: BlockId): number {
    const index = this.#logicalIndexes[block];
    if (index < 0) return 0;
    if (this.#ranking === "prefixClosed") return -index;
    return this.#classOf(block) === 0 ? index : 0;
  }

  /**
   * Publishes a held block under a key and returns the key's canonical block:
   * `block`, or the one that was there first, whose kind is raised and whose
   * epoch is set. The caller exchanges a duplicate for the canonical block.
   */
  register(
    block: BlockId,
    digests: Int32Array,
    at: number,
    pageOffset: number,
    kind: BoundaryKind,
    epoch: number,
    logicalIndex: number,
  ): BlockId {
    const canonical = this.#table.find(digests, at, pageOffset);
    if (canonical !== 0) {
      this.#refresh(canonical, kind, epoch);
      return canonical;
    }
    if (this.isCached(block)) broken(`block ${block} is registered under another key already`);
    this.refs.retain(block);
    this.digests.put(block, digests, at, pageOffset);
    this.#flags[block] = cachedBit | kind;
    this.#logicalIndexes[block] = logicalIndex;
    this.order.enter(block, epoch);
    this.#table.add(block);
    this.#sink?.entryAdded(this.refs.group, this.digests.words, block * 8);
    return block;
  }

  /** A hit takes one more ownership of an entry, marks it as acquired and makes it young. */
  acquireMatched(block: BlockId, epoch: number): void {
    this.refs.retain(block);
    this.markAcquired(block, epoch);
  }

  /** The second half of `acquireMatched`, for a block that the caller owns already. */
  markAcquired(block: BlockId, epoch: number): void {
    assert(this.isCached(block) && !this.isIdle(block), "only a held entry can be acquired");
    const order = this.#orderOf(block);
    this.#flags[block] |= acquiredBit;
    if (order === this.#orderOf(block)) order.changeEpoch(block, epoch);
    else {
      order.leave(block);
      this.acquiredOrder.enter(block, epoch);
    }
  }

  /** `markAcquired` for a whole match, in a tier whose hits share one order; 0 stands for a hole. */
  markMatchAcquired(blocks: Int32Array, length: number, epoch: number): void {
    assert(this.acquiredOrder === this.order, "Host entries change their order when they are hit");
    for (let i = 0; i < length; i++) {
      const block = blocks[i];
      if (block === 0) continue;
      assert(
        (this.#flags[block] & cachedBit) !== 0 && !this.order.isLinked(block),
        "a hit must be held and cached",
      );
      this.#flags[block] |= acquiredBit;
    }
    if (length > 0) this.order.changeEpochs(blocks, length, epoch);
  }

  /** Drops an entry that nobody else owns, and with it the block. */
  evict(block: BlockId): void {
    if (!this.isIdle(block)) broken(`block ${block} of group ${this.refs.group} is not the index's alone`);
    this.#unlink(block);
    this.#orderOf(block).leave(block);
    this.#table.remove(block);
    this.#flags[block] = 0;
    this.#sink?.entryRemoved(this.refs.group, this.digests.words, block * 8);
    this.refs.release(block);
  }

  /** Drops every entry that nobody uses and says how many there were. */
  evictIdle(): number {
    let count = 0;
    for (const order of [this.order, this.acquiredOrder]) {
      for (; order.buckets.heapSize > 0; count++) this.evict(order.firstOf(order.buckets.heap[0]));
    }
    return count;
  }

  /** Drops every entry; all must be idle. */
  clear(): void {
    this.evictIdle();
    assert(this.numEntries === 0, "an index with shared entries was cleared");
  }

  becameSole(block: BlockId): void {
    if (!this.isCached(block)) return;
    this.#orderOf(block).link(block, this.#classOf(block), this.positionRankOf(block));
    this.refs.census.childBecameIdle(this.refs.parentOf(block));
  }

  becameShared(block: BlockId): void {
    if (this.isCached(block)) this.#unlink(block);
  }

  #unlink(block: BlockId): void {
    this.#orderOf(block).unlink(block);
    this.refs.census.childCeasedToBeIdle(this.refs.parentOf(block));
  }

  #orderOf(block: BlockId): EvictionOrder {
    return (this.#flags[block] & acquiredBit) !== 0 ? this.acquiredOrder : this.order;
  }

  #classOf(block: BlockId): EvictionClass {
    if (this.#ranking !== "open") return 1;
    const isUnhitChunk = (this.#flags[block] & (kindMask | acquiredBit)) === 0;
    return isUnhitChunk && this.#logicalIndexes[block] >= 0 ? 0 : 1;
  }

  /**
   * A registration met its key again: the entry may be idle, so it leaves the order while its place changes.
   */
  #refresh(block: BlockId, kind: BoundaryKind, epoch: number): void {
    const isIdle = this.isIdle(block);
    if (isIdle) this.#orderOf(block).unlink(block);
    if (kind > this.kindOf(block)) this.#flags[block] = (this.#flags[block] & ~kindMask) | kind;
    this.#orderOf(block).changeEpoch(block, epoch);
    if (isIdle) this.#orderOf(block).link(block, this.#classOf(block), this.positionRankOf(block));
  }
}
