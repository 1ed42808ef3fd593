/**
 * Answers one question on shadow occupancy, changing nothing: which cached blocks must go for this admission
 * to fit? The set is minimal: a chosen block that turns out not to be needed is put back.
 */
import type { CacheGroup, CacheTier } from "../cache-group";
import type { BlockTable } from "../core/block-table";
import type { BlockId, GroupId, LcmBlockId } from "../core/ids";
import { Int32List } from "../core/int32-list";
import { EvictionCursor } from "../prefix/eviction-cursor";

/** A block that could go, and its place in the one order that ranks all of them; lower goes first. */
class Candidate {
  group: GroupId = 0;
  block: BlockId = 0;
  epoch = 0;
  tier = 0;
  rank = 0;

  comesBefore(other: Candidate): boolean {
    if (this.epoch !== other.epoch) return this.epoch < other.epoch;
    if (this.tier !== other.tier) return this.tier < other.tier;
    if (this.rank !== other.rank) return this.rank < other.rank;
    if (this.group !== other.group) return this.group < other.group;
    return this.block < other.block;
  }
}

export class AdmissionPlanner {
  readonly #groups: readonly CacheGroup[];
  readonly #device: CacheTier;
  readonly #cursors: readonly EvictionCursor[];
  readonly #heads: readonly Candidate[];
  /** Blocks that only the request at hand holds, or holds together with the index, and that have expired. */
  #expired: Candidate[] = [];
  #numExpired = 0;
  #nextExpired = 0;
  /** Shadow occupancy of the parents that were touched in this pass. */
  readonly #shadowStamps: Int32Array;
  readonly #shadowOccupancy: Int32Array;
  #pass = 0;
  #emptyParents = 0;
  readonly #freeSlots: Int32Array;
  #needs: Int32Array = new Int32Array(0);
  /** Chosen blocks as (group, block) pairs, first chosen first; a block of 0 was put back. */
  readonly victims = new Int32List(64);

  constructor(groups: readonly CacheGroup[], device: CacheTier) {
    this.#groups = groups;
    this.#device = device;
    this.#cursors = groups.map((group) => new EvictionCursor(group.index.order));
    this.#heads = groups.map(() => new Candidate());
    this.#shadowStamps = new Int32Array(device.pool.numLcmBlocks + 1);
    this.#shadowOccupancy = new Int32Array(device.pool.numLcmBlocks + 1);
    this.#freeSlots = new Int32Array(groups.length);
  }

  /**
   * Fills `victims` so that `needs[g]` fresh blocks of each group fit once they are gone; false when nothing
   * can make them fit. `tables` may have slots that expire at `numComputedTokens` (-1: none do).
   */
  plan(needs: Int32Array, tables: readonly BlockTable[], numComputedTokens: number): boolean {
    this.victims.clear();
    this.#needs = needs;
    this.#emptyParents = this.#device.pool.numEmpty;
    for (let group = 0; group < this.#groups.length; group++) {
      this.#freeSlots[group] = this.#device.pool.freeSlotsOf(group);
    }
    if (this.#fits()) return true;
    this.#numExpired = 0;
    if (numComputedTokens >= 0) this.#collectExpired(tables, numComputedTokens);
    if (!this.#couldFit()) return false;
    if (!this.#choose()) return false;
    this.#putBackUnneeded();
    return true;
  }

  #fits(): boolean {
    let parents = 0;
    for (let group = 0; group < this.#groups.length; group++) {
      const short = this.#needs[group] - this.#freeSlots[group];
      if (short > 0) parents += Math.ceil(short / this.#groups[group].spec.cacheBlocksPerLcmBlock);
    }
    return parents <= this.#emptyParents;
  }

  /** A cheap upper bound of what eviction can yield, so that a hopeless request costs no walk. */
  #couldFit(): boolean {
    let parents = 0;
    for (let group = 0; group < this.#groups.length; group++) {
      const { spec, index } = this.#groups[group];
      const packing = spec.cacheBlocksPerLcmBlock;
      const holes = packing === 1 ? 0 : this.#freeSlots[group] + index.numIdle + this.#numExpired;
      const short = this.#needs[group] - holes;
      if (short > 0) parents += Math.ceil(short / packing);
    }
    return parents <= this.#emptyParents + this.#device.census.numIdle + this.#numExpired;
  }

  /** Takes candidates off in order until the demand fits. */
  #choose(): boolean {
    this.#pass++;
    for (let group = 0; group < this.#groups.length; group++) {
      this.#cursors[group].start();
      this.#loadHead(group);
    }
    this.#nextExpired = 0;
    while (!this.#fits()) {
      let best = -1;
      for (let group = 0; group < this.#groups.length; group++) {
        const head = this.#heads[group];
        if (head.block !== 0 && (best < 0 || head.comesBefore(this.#heads[best]))) best = group;
      }
      const expired = this.#nextExpired < this.#numExpired ? this.#expired[this.#nextExpired] : undefined;
      if (expired !== undefined && (best < 0 || expired.comesBefore(this.#heads[best]))) {
        this.#nextExpired++;
        this.#take(expired.group, expired.block);
      } else if (best >= 0) {
        this.#take(best, this.#heads[best].block);
        this.#cursors[best].advance();
        this.#loadHead(best);
      } else return false;
    }
    return true;
  }

  /** Walks the choice backwards and keeps only what the demand cannot do without. */
  #putBackUnneeded(): void {
    const { items, length } = this.victims;
    for (let i = length - 2; i >= 0; i -= 2) {
      this.#shift(items[i], items[i + 1], 1);
      if (this.#fits()) items[i + 1] = 0;
      else this.#shift(items[i], items[i + 1], -1);
    }
  }

  #take(group: GroupId, block: BlockId): void {
    this.victims.push(group);
    this.victims.push(block);
    this.#shift(group, block, -1);
  }

  /** Moves a parent's shadow occupancy by one and the free counts with it. */
  #shift(group: GroupId, block: BlockId, change: 1 | -1): void {
    const parent: LcmBlockId = this.#device.pool.parentOf(group, block);
    if (this.#shadowStamps[parent] !== this.#pass) {
      this.#shadowStamps[parent] = this.#pass;
      this.#shadowOccupancy[parent] = this.#device.pool.occupancyOf(parent);
    }
    const before = this.#shadowOccupancy[parent];
    this.#shadowOccupancy[parent] = before + change;
    const becomesEmpty = change < 0 && before === 1;
    const wasEmpty = change > 0 && before === 0;
    if (becomesEmpty || wasEmpty) {
      this.#emptyParents -= change;
      this.#freeSlots[group] += change * (this.#groups[group].spec.cacheBlocksPerLcmBlock - 1);
    } else this.#freeSlots[group] -= change;
  }

  #loadHead(group: GroupId): void {
    const head = this.#heads[group];
    head.block = this.#cursors[group].block;
    if (head.block === 0) return;
    const { index } = this.#groups[group];
    head.group = group;
    head.epoch = index.epochOf(head.block);
    head.tier = index.tierOf(head.block);
    head.rank = index.positionRankOf(head.block);
  }

  /** Expired slots whose block goes free once the table lets go, perhaps together with its cache entry. */
  #collectExpired(tables: readonly BlockTable[], numComputedTokens: number): void {
    for (let group = 0; group < this.#groups.length; group++) {
      const { geometry, index, allocator } = this.#groups[group];
      const table = tables[group];
      const end = Math.min(geometry.expiredBlocksAt(numComputedTokens), table.length);
      for (let slot = table.reclaimedBlocks; slot < end; slot++) {
        const block = table.at(slot);
        if (block === 0) continue;
        const isCached = index.isCached(block);
        if (allocator.refs.ownersOf(block) !== (isCached ? 2 : 1)) continue;
        this.#addExpired(group, block, isCached);
      }
    }
    if (this.#numExpired < 2) return;
    const sorted = this.#expired.slice(0, this.#numExpired).sort((a, b) => (a.comesBefore(b) ? -1 : 1));
    this.#expired = [...sorted, ...this.#expired.slice(this.#numExpired)];
  }

  #addExpired(group: GroupId, block: BlockId, isCached: boolean): void {
    if (this.#numExpired === this.#expired.length) this.#expired.push(new Candidate());
    const candidate = this.#expired[this.#numExpired++];
    const { index } = this.#groups[group];
    candidate.group = group;
    candidate.block = block;
    candidate.epoch = isCached ? index.epochOf(block) : 0;
    candidate.tier = isCached ? index.tierOf(block) : 0;
    candidate.rank = isCached ? index.positionRankOf(block) : 0;
  }
}
