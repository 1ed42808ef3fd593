/**
 * Shared ownership of one group's blocks in one pool: every holder (a table slot, a cache entry, a transfer)
 * counts one. The last one to let go returns the slot to the pool. Who the holders are is not known here.
 */
import { broken } from "../../assert";
import type { BlockPool } from "./block-pool";
import type { BlockId, GroupId, LcmBlockId } from "./ids";
import type { LcmCensus } from "./lcm-census";

/** Told when a block's owners drop to one or rise from one. */
export interface SoleOwnerObserver {
  becameSole(block: BlockId): void;
  becameShared(block: BlockId): void;
}

const nobody: SoleOwnerObserver = { becameSole() {}, becameShared() {} };

export class CacheBlockRefs {
  readonly pool: BlockPool;
  readonly group: GroupId;
  readonly census: LcmCensus;
  readonly #counts: Int32Array;
  readonly #packing: number;
  #observer: SoleOwnerObserver = nobody;
  #numHeld = 0;

  constructor(pool: BlockPool, group: GroupId, census: LcmCensus) {
    this.pool = pool;
    this.group = group;
    this.census = census;
    this.#packing = pool.packingOf(group);
    this.#counts = new Int32Array(pool.numLcmBlocks * this.#packing + 1);
  }

  observe(observer: SoleOwnerObserver): void {
    this.#observer = observer;
  }

  /** Blocks with at least one owner. */
  get numHeld(): number {
    return this.#numHeld;
  }

  /** The LCM block that a block lies in. */
  parentOf(block: BlockId): LcmBlockId {
    return this.#packing === 1 ? block : Math.floor((block - 1) / this.#packing) + 1;
  }

  /** Owners of a block; 0 for a free one. */
  ownersOf(block: BlockId): number {
    return this.#counts[block];
  }

  /** Takes a block from the pool with one owner, the caller; 0 when there is none. */
  acquire(bucketLoads?: Int32Array): BlockId {
    const block = this.pool.acquire(this.group, bucketLoads);
    if (block === 0) return 0;
    if (this.#counts[block] !== 0)
      broken(`the pool gave out block ${block} of group ${this.group}, which has owners`);
    this.#counts[block] = 1;
    this.#numHeld++;
    this.census.childAcquired(this.parentOf(block));
    return block;
  }

  /** One more owner for a block that has one. */
  retain(block: BlockId): void {
    const owners = this.#counts[block];
    if (owners <= 0) broken(`block ${block} of group ${this.group} has no owner to share it`);
    this.#counts[block] = owners + 1;
    if (owners === 1) this.#observer.becameShared(block);
  }

  /** One owner lets go. */
  release(block: BlockId): void {
    const owners = this.#counts[block] - 1;
    if (owners < 0) broken(`block ${block} of group ${this.group} was released more often than it was held`);
    this.#counts[block] = owners;
    if (owners === 1) this.#observer.becameSole(block);
    else if (owners === 0) {
      this.#numHeld--;
      this.pool.release(this.group, block);
      this.census.childReleased(this.parentOf(block));
    }
  }
}
