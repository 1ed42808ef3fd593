/**
 * Counts LCM blocks by what they are good for: named by a live table, or held by nobody but the prefix cache.
 * Fed by the holders as they come and go, so that a gauge costs nothing; the pool itself never knows holders.
 */
import type { BlockPool } from "./block-pool";
import type { LcmBlockId } from "./ids";

export class LcmCensus {
  readonly #pool: BlockPool;
  /** Children of a parent that only the cache holds. */
  readonly #idleChildren: Int32Array;
  /** Table slots that name a child of a parent. */
  readonly #tableSlots: Int32Array;
  #numIdle = 0;
  #numActive = 0;

  constructor(pool: BlockPool) {
    this.#pool = pool;
    this.#idleChildren = new Int32Array(pool.numLcmBlocks + 1);
    this.#tableSlots = new Int32Array(pool.numLcmBlocks + 1);
  }

  /** Parents of which every child is held by the cache alone. */
  get numIdle(): number {
    return this.#numIdle;
  }

  /** Parents that some live table names. */
  get numActive(): number {
    return this.#numActive;
  }

  isIdle(parent: LcmBlockId): boolean {
    const children = this.#idleChildren[parent];
    return children > 0 && children === this.#pool.occupancyOf(parent);
  }

  idleChildrenOf(parent: LcmBlockId): number {
    return this.#idleChildren[parent];
  }

  /** The pool just gave out a child of `parent`. */
  childAcquired(parent: LcmBlockId): void {
    const idle = this.#idleChildren[parent];
    if (idle > 0 && idle === this.#pool.occupancyOf(parent) - 1) this.#numIdle--;
  }

  /** The pool just took back a child of `parent`, one that was not idle. */
  childReleased(parent: LcmBlockId): void {
    if (this.isIdle(parent)) this.#numIdle++;
  }

  childBecameIdle(parent: LcmBlockId): void {
    const children = this.#idleChildren[parent] + 1;
    this.#idleChildren[parent] = children;
    if (children === this.#pool.occupancyOf(parent)) this.#numIdle++;
  }

  childCeasedToBeIdle(parent: LcmBlockId): void {
    const children = this.#idleChildren[parent];
    this.#idleChildren[parent] = children - 1;
    if (children === this.#pool.occupancyOf(parent)) this.#numIdle--;
  }

  tableNamed(parent: LcmBlockId): void {
    if (this.#tableSlots[parent]++ === 0) this.#numActive++;
  }

  tableDropped(parent: LcmBlockId): void {
    if (--this.#tableSlots[parent] === 0) this.#numActive--;
  }
}
