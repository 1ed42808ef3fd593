/**
 * Physical placement of one group: moves blocks between a pool and block tables. Counts blocks only; every
 * quantity it is given was converted before. What is reusable it neither knows nor asks.
 */
import { assert } from "../../assert";
import type { AcquirePlan } from "../core/acquire-plan";
import type { BlockTable } from "../core/block-table";
import type { CacheBlockRefs } from "../core/cache-block-refs";
import type { BlockId } from "../core/ids";
import type { Int32BufferPool } from "../core/int32-buffer-pool";
import type { Int32List } from "../core/int32-list";

export class GroupAllocator {
  readonly refs: CacheBlockRefs;
  readonly #buffers: Int32BufferPool;
  /** Non-null blocks of the table at hand by shard; undefined when the group has one shard. */
  readonly #loads: Int32Array | undefined;

  constructor(refs: CacheBlockRefs, shardCount: number, buffers: Int32BufferPool) {
    this.refs = refs;
    this.#buffers = buffers;
    refs.pool.registerShards(refs.group, shardCount);
    this.#loads = shardCount > 1 ? new Int32Array(shardCount) : undefined;
  }

  canAcquire(plan: AcquirePlan): boolean {
    return this.refs.pool.canAcquire(this.refs.group, plan.numBlocks);
  }

  /**
   * Carries a plan out; `fresh` receives the new ids. False, with nothing changed, when the pool is short.
   */
  acquire(table: BlockTable, plan: AcquirePlan, fresh: Int32List): boolean {
    if (!this.canAcquire(plan)) return false;
    const wasEmpty = table.length === 0;
    if (plan.suffixStart >= 0) {
      assert(table.length <= plan.suffixStart, "a sparse suffix starts inside its table");
      while (table.length < plan.suffixStart) table.append(0, this.#buffers);
      if (wasEmpty) table.reclaimedBlocks = plan.suffixStart;
    }
    table.reserve(plan.numBlocks, this.#buffers);
    this.#countLoads(table);
    for (let i = 0; i < plan.numBlocks; i++) {
      const block = this.#acquireOne(table);
      fresh.push(block);
    }
    assert(table.length === plan.tableBlocksAfter, "an acquisition ended at another length than planned");
    table.availableTokens = plan.availableTokensAfter;
    return true;
  }

  /**
   * Starts an empty table with blocks (0 = hole) that the caller owns; their ownership passes to the table.
   */
  claim(table: BlockTable, blocks: Int32Array, count: number): void {
    assert(table.length === 0, "only an empty table can claim a prefix");
    table.reserve(count, this.#buffers);
    let leadingHoles = 0;
    for (let i = 0; i < count; i++) {
      const block = blocks[i];
      if (block === 0) {
        if (leadingHoles === i) leadingHoles++;
      } else {
        this.#named(block);
      }
      table.append(block, this.#buffers);
    }
    table.reclaimedBlocks = leadingHoles;
  }

  /**
   * Appends a destination for each non-null source, a hole for each null one. The room was secured before.
   */
  appendHostExtension(table: BlockTable, sources: Int32Array, count: number): void {
    this.#countLoads(table);
    for (let i = 0; i < count; i++) {
      if (sources[i] !== 0) this.#acquireOne(table);
      else {
        if (table.reclaimedBlocks === table.length) table.reclaimedBlocks++;
        table.append(0, this.#buffers);
      }
    }
  }

  /** Exchanges a slot's block for another holder's block of the same content. */
  replace(table: BlockTable, slot: number, block: BlockId): void {
    const old = table.at(slot);
    this.refs.retain(block);
    this.#named(block);
    table.replace(slot, block);
    this.#drop(old);
  }

  /** Nulls the slots below `numExpired`; true when there were some. Length and room are unchanged. */
  reclaimExpired(table: BlockTable, numExpired: number): boolean {
    const begin = table.reclaimedBlocks;
    const end = Math.min(numExpired, table.length);
    if (end <= begin) return false;
    for (let slot = begin; slot < end; slot++) {
      if (table.at(slot) !== 0) this.#drop(table.at(slot));
    }
    table.nullRange(begin, end);
    table.reclaimedBlocks = end;
    return true;
  }

  /** Lets go of everything, last slot first, and empties the table. */
  free(table: BlockTable): void {
    for (let slot = table.length - 1; slot >= 0; slot--) {
      if (table.at(slot) !== 0) this.#drop(table.at(slot));
    }
    table.reset(this.#buffers);
  }

  #acquireOne(table: BlockTable): BlockId {
    const block = this.refs.acquire(this.#loads);
    assert(block !== 0, "a pool that had room for a plan ran out while carrying it out");
    if (this.#loads !== undefined) this.#loads[(block - 1) % this.#loads.length]++;
    this.#named(block);
    table.append(block, this.#buffers);
    return block;
  }

  #named(block: BlockId): void {
    this.refs.census.tableNamed(this.refs.parentOf(block));
  }

  #drop(block: BlockId): void {
    this.refs.census.tableDropped(this.refs.parentOf(block));
    this.refs.release(block);
  }

  #countLoads(table: BlockTable): void {
    if (this.#loads === undefined) return;
    this.#loads.fill(0);
    for (let slot = 0; slot < table.length; slot++) {
      const block = table.at(slot);
      if (block !== 0) this.#loads[(block - 1) % this.#loads.length]++;
    }
  }
}
