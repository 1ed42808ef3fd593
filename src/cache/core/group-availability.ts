/**
 * One group's partly filled LCM blocks, by bucket and occupancy, so that the pool's choice is a look at set
 * heads. Knows slots and counts; which slot is taken is the pool's bitmap.
 */
import { assert } from "../../assert";
import type { LcmBlockId } from "./ids";
import { LcmBlockSet } from "./lcm-block-set";

export class GroupAvailability {
  readonly slotsPerParent: number;
  readonly #numLcmBlocks: number;
  #numBuckets = 1;
  #isBucketCountFixed = false;
  /** Free slots in parents bound to this group. */
  numFreeSlots = 0;
  /** [bucket][occupancy]: parents of that occupancy with a free slot in the bucket; made on first use. */
  #sets: (LcmBlockSet | undefined)[] = [];

  constructor(numLcmBlocks: number, slotsPerParent: number) {
    this.#numLcmBlocks = numLcmBlocks;
    this.slotsPerParent = slotsPerParent;
  }

  get numBuckets(): number {
    return this.#numBuckets;
  }

  /** Fixes the bucket count; a second call must agree. */
  fixBuckets(numBuckets: number): void {
    assert(
      numBuckets > 0 && this.slotsPerParent % numBuckets === 0,
      `shard count ${numBuckets} does not divide ${this.slotsPerParent} slots`,
    );
    assert(
      !this.#isBucketCountFixed || numBuckets === this.#numBuckets,
      "the shard count of a group is fixed",
    );
    this.#numBuckets = numBuckets;
    this.#isBucketCountFixed = true;
  }

  /** A group whose shard count nobody registered has one bucket from its first block on. */
  fixOnFirstUse(): void {
    this.#isBucketCountFixed = true;
  }

  add(parent: LcmBlockId, bucket: number, occupancy: number): void {
    const index = bucket * this.slotsPerParent + occupancy;
    let set = this.#sets[index];
    if (set === undefined) {
      set = new LcmBlockSet(this.#numLcmBlocks);
      this.#sets[index] = set;
    }
    set.add(parent);
  }

  remove(parent: LcmBlockId, bucket: number, occupancy: number): void {
    this.#sets[bucket * this.slotsPerParent + occupancy]?.remove(parent);
  }

  /** The fullest parent with a free slot in the bucket, lowest id first; 0 when there is none. */
  fullestIn(bucket: number): LcmBlockId {
    const base = bucket * this.slotsPerParent;
    for (let occupancy = this.slotsPerParent - 1; occupancy > 0; occupancy--) {
      const set = this.#sets[base + occupancy];
      if (set !== undefined && set.size > 0) return set.first();
    }
    return 0;
  }
}
