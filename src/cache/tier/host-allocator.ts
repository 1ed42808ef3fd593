/**
 * Gets blocks on Host for a batch, making room by evicting Host entries that nobody uses. Best effort: what
 * cannot be had stays 0. Pinned entries are never touched.
 */
import type { CacheGroup, CacheTier } from "../cache-group";
import type { CacheBlockRefs } from "../core/cache-block-refs";
import type { BlockId, GroupId, LcmBlockId } from "../core/ids";
import type { PrefixCacheIndex } from "../prefix/prefix-cache-index";

/** How the last batch was served; for tests and gauges. */
export interface HostBatchStats {
  sameGroupScans: number;
  crossGroupScans: number;
}

export class HostAllocator {
  readonly #groups: readonly CacheGroup[];
  readonly #tier: CacheTier;
  readonly stats: HostBatchStats = { sameGroupScans: 0, crossGroupScans: 0 };

  constructor(groups: readonly CacheGroup[], tier: CacheTier) {
    this.#groups = groups;
    this.#tier = tier;
  }

  /** One block for each group of `wanted`; the caller owns what it gets. */
  acquire(wanted: readonly GroupId[]): BlockId[] {
    this.stats.sameGroupScans = 0;
    this.stats.crossGroupScans = 0;
    const granted = wanted.map((group) => this.#refs(group).acquire());
    if (granted.includes(0)) this.#evictOwn(wanted, granted);
    if (granted.includes(0)) this.#evictParents(wanted, granted);
    return granted;
  }

  #evictOwn(wanted: readonly GroupId[], granted: BlockId[]): void {
    const shortGroups = new Set(wanted.filter((_, i) => granted[i] === 0));
    for (const group of shortGroups) {
      this.stats.sameGroupScans++;
      const index = this.#index(group);
      for (let i = 0; i < wanted.length; i++) {
        if (granted[i] !== 0 || wanted[i] !== group) continue;
        const worst = this.#worstOf(index);
        if (worst === 0) break;
        index.evict(worst);
        granted[i] = this.#refs(group).acquire();
      }
    }
  }

  /** Empties whole parents, least valuable first, each for the first request that still has nothing. */
  #evictParents(wanted: readonly GroupId[], granted: BlockId[]): void {
    this.stats.crossGroupScans++;
    const parents = this.#idleParents();
    for (let i = 0; i < wanted.length; i++) {
      if (granted[i] !== 0) continue;
      granted[i] = this.#refs(wanted[i]).acquire();
      while (granted[i] === 0 && parents.length > 0) {
        const parent = parents.pop() as LcmBlockId;
        if (!this.#tier.census.isIdle(parent)) continue;
        for (const child of this.#childrenOf(parent))
          this.#index(this.#tier.pool.groupOf(parent)).evict(child);
        granted[i] = this.#refs(wanted[i]).acquire();
      }
    }
  }

  /** Parents that only the cache holds, the most valuable first. */
  #idleParents(): LcmBlockId[] {
    const parents: {
      parent: LcmBlockId;
      wasAcquired: boolean;
      epoch: number;
      group: GroupId;
      child: BlockId;
    }[] = [];
    for (let parent = 1; parent <= this.#tier.pool.numLcmBlocks; parent++) {
      if (!this.#tier.census.isIdle(parent)) continue;
      const group = this.#tier.pool.groupOf(parent);
      const index = this.#index(group);
      let best = { parent, wasAcquired: false, epoch: -1, group, child: 0 };
      for (const child of this.#childrenOf(parent)) {
        const value = {
          parent,
          wasAcquired: index.wasAcquired(child),
          epoch: index.epochOf(child),
          group,
          child,
        };
        if (compareValues(value, best) > 0) best = value;
      }
      parents.push(best);
    }
    parents.sort((a, b) => compareValues(b, a));
    return parents.map((value) => value.parent);
  }

  #childrenOf(parent: LcmBlockId): BlockId[] {
    const pool = this.#tier.pool;
    const group = pool.groupOf(parent);
    const children: BlockId[] = [];
    for (let slot = 0; slot < pool.packingOf(group); slot++) {
      const block = pool.blockAt(group, parent, slot);
      if (pool.isOccupied(group, block)) children.push(block);
    }
    return children;
  }

  #worstOf(index: PrefixCacheIndex): BlockId {
    for (const order of [index.order, index.acquiredOrder]) {
      if (order.buckets.heapSize > 0) return order.firstOf(order.buckets.heap[0]);
    }
    return 0;
  }

  #refs(group: GroupId): CacheBlockRefs {
    return this.#groups[group].hostRefs as CacheBlockRefs;
  }

  #index(group: GroupId): PrefixCacheIndex {
    return this.#groups[group].hostIndex as PrefixCacheIndex;
  }
}

interface ChildValue {
  readonly parent: LcmBlockId;
  readonly wasAcquired: boolean;
  readonly epoch: number;
  readonly group: GroupId;
  readonly child: BlockId;
}

function compareValues(a: ChildValue, b: ChildValue): number {
  if (a.wasAcquired !== b.wasAcquired) return a.wasAcquired ? 1 : -1;
  return a.epoch - b.epoch || a.group - b.group || a.parent - b.parent || a.child - b.child;
}
