/**
 * Places child blocks of all groups into LCM blocks (parents). Knows which slots are occupied, never who
 * holds them: owners are counted in CacheBlockRefs, reuse is PrefixCacheIndex's.
 */
import { assert, broken } from "../../assert";
import { maxInt32 } from "../../limits";
import { GroupAvailability } from "./group-availability";
import type { BlockId, GroupId, LcmBlockId } from "./ids";

export class BlockPool {
  readonly numLcmBlocks: number;
  readonly #groups: readonly GroupAvailability[];
  /** Empty parents in the order in which they became empty. */
  readonly #emptyRing: Int32Array;
  #emptyHead = 0;
  #numEmpty: number;
  readonly #groupOfParent: Int32Array;
  readonly #occupancy: Int32Array;
  readonly #slotWords: Int32Array;
  readonly #wordsPerParent: number;

  /** `packings[g]` is the number of group g's blocks in one parent. */
  constructor(numLcmBlocks: number, packings: readonly number[]) {
    assert(numLcmBlocks >= 0, "a pool cannot have a negative number of LCM blocks");
    for (const packing of packings) {
      assert(packing > 0, "cacheBlocksPerLcmBlock must be positive");
      assert(numLcmBlocks * packing < maxInt32, "block ids would not fit int32");
    }
    this.numLcmBlocks = numLcmBlocks;
    this.#groups = packings.map((packing) => new GroupAvailability(numLcmBlocks, packing));
    this.#numEmpty = numLcmBlocks;
    this.#emptyRing = new Int32Array(Math.max(numLcmBlocks, 1));
    for (let i = 0; i < numLcmBlocks; i++) this.#emptyRing[i] = i + 1;
    this.#groupOfParent = new Int32Array(numLcmBlocks + 1).fill(-1);
    this.#occupancy = new Int32Array(numLcmBlocks + 1);
    this.#wordsPerParent = Math.ceil(Math.max(1, ...packings) / 32);
    this.#slotWords = new Int32Array((numLcmBlocks + 1) * this.#wordsPerParent);
  }

  get numEmpty(): number {
    return this.#numEmpty;
  }

  packingOf(group: GroupId): number {
    return this.#groups[group].slotsPerParent;
  }

  /** Blocks are dealt over `shardCount` buckets of slots; fixed for the life of the pool. */
  registerShards(group: GroupId, shardCount: number): void {
    this.#groups[group].fixBuckets(shardCount);
  }

  shardCountOf(group: GroupId): number {
    return this.#groups[group].numBuckets;
  }

  /** Free slots in parents bound to the group. */
  freeSlotsOf(group: GroupId): number {
    return this.#groups[group].numFreeSlots;
  }

  /** Blocks the group could take if it were alone. */
  availableOf(group: GroupId): number {
    return this.#groups[group].numFreeSlots + this.#numEmpty * this.#groups[group].slotsPerParent;
  }

  canAcquire(group: GroupId, count: number): boolean {
    return count <= this.availableOf(group);
  }

  /** Group a parent is bound to, -1 when empty. */
  groupOf(parent: LcmBlockId): GroupId {
    return this.#groupOfParent[parent];
  }

  occupancyOf(parent: LcmBlockId): number {
    return this.#occupancy[parent];
  }

  parentOf(group: GroupId, block: BlockId): LcmBlockId {
    const packing = this.#groups[group].slotsPerParent;
    return packing === 1 ? block : Math.floor((block - 1) / packing) + 1;
  }

  slotOf(group: GroupId, block: BlockId): number {
    return (block - 1) % this.#groups[group].slotsPerParent;
  }

  /** The id of a slot; throws for a place that does not exist. */
  blockAt(group: GroupId, parent: LcmBlockId, slot: number): BlockId {
    const packing = this.#groups[group].slotsPerParent;
    if (parent < 1 || parent > this.numLcmBlocks) broken(`LCM block ${parent} is outside the pool`);
    if (slot < 0 || slot >= packing) broken(`slot ${slot} is outside a parent of ${packing}`);
    return 1 + (parent - 1) * packing + slot;
  }

  isOccupied(group: GroupId, block: BlockId): boolean {
    const parent = this.parentOf(group, block);
    if (this.#groupOfParent[parent] !== group) return false;
    const slot = this.slotOf(group, block);
    return (this.#slotWords[parent * this.#wordsPerParent + (slot >>> 5)] & (1 << (slot & 31))) !== 0;
  }

  /**
   * Takes one block, 0 when none is left. Among free slots of bound parents:
   * least loaded bucket (when loads are given), fullest parent, lowest parent,
   * lowest slot; only when there is none the oldest empty parent is opened.
   */
  acquire(group: GroupId, bucketLoads?: Int32Array): BlockId {
    const availability = this.#groups[group];
    if (availability.numFreeSlots === 0) return this.#openEmptyParent(group, bucketLoads);
    let bucket = -1;
    let parent = 0;
    for (let candidate = 0; candidate < availability.numBuckets; candidate++) {
      const fullest = availability.fullestIn(candidate);
      if (fullest === 0) continue;
      if (bucket < 0 || this.#isBetter(candidate, fullest, bucket, parent, bucketLoads)) {
        bucket = candidate;
        parent = fullest;
      }
    }
    return this.#occupy(availability, group, parent, this.#lowestFreeSlot(group, parent, bucket));
  }

  /** Frees one slot; the last one unbinds the parent and queues it as empty. */
  release(group: GroupId, block: BlockId): void {
    const availability = this.#groups[group];
    const parent = this.parentOf(group, block);
    const slot = this.slotOf(group, block);
    if (!this.isOccupied(group, block)) broken(`block ${block} of group ${group} is not occupied`);
    const occupancy = this.#occupancy[parent];
    this.#unlist(availability, parent, occupancy);
    this.#slotWords[parent * this.#wordsPerParent + (slot >>> 5)] &= ~(1 << (slot & 31));
    this.#occupancy[parent] = occupancy - 1;
    if (occupancy > 1) {
      availability.numFreeSlots++;
      this.#list(availability, parent, occupancy - 1);
      return;
    }
    availability.numFreeSlots -= availability.slotsPerParent - 1;
    this.#groupOfParent[parent] = -1;
    const tail = this.#emptyHead + this.#numEmpty++;
    this.#emptyRing[tail >= this.numLcmBlocks ? tail - this.numLcmBlocks : tail] = parent;
  }

  /** Empty parents, first to be opened first. For tests and tools. */
  emptyParents(): LcmBlockId[] {
    const parents: LcmBlockId[] = [];
    for (let i = 0; i < this.#numEmpty; i++) {
      parents.push(this.#emptyRing[(this.#emptyHead + i) % this.numLcmBlocks]);
    }
    return parents;
  }

  #isBetter(bucket: number, parent: number, bestBucket: number, best: number, loads?: Int32Array): boolean {
    if (loads !== undefined) return loads[bucket] < loads[bestBucket];
    const occupancy = this.#occupancy[parent];
    const bestOccupancy = this.#occupancy[best];
    if (occupancy !== bestOccupancy) return occupancy > bestOccupancy;
    if (parent !== best) return parent < best;
    const group = this.#groupOfParent[parent];
    return this.#lowestFreeSlot(group, parent, bucket) < this.#lowestFreeSlot(group, best, bestBucket);
  }

  #openEmptyParent(group: GroupId, bucketLoads?: Int32Array): BlockId {
    if (this.#numEmpty === 0) return 0;
    const parent = this.#emptyRing[this.#emptyHead];
    this.#emptyHead = this.#emptyHead + 1 === this.numLcmBlocks ? 0 : this.#emptyHead + 1;
    this.#numEmpty--;
    const availability = this.#groups[group];
    availability.fixOnFirstUse();
    this.#groupOfParent[parent] = group;
    availability.numFreeSlots += availability.slotsPerParent;
    let slot = 0;
    for (let bucket = 1; bucketLoads !== undefined && bucket < availability.numBuckets; bucket++) {
      if (bucketLoads[bucket] < bucketLoads[slot]) slot = bucket;
    }
    return this.#occupy(availability, group, parent, slot);
  }

  #occupy(availability: GroupAvailability, group: GroupId, parent: LcmBlockId, slot: number): BlockId {
    const occupancy = this.#occupancy[parent];
    this.#unlist(availability, parent, occupancy);
    this.#slotWords[parent * this.#wordsPerParent + (slot >>> 5)] |= 1 << (slot & 31);
    this.#occupancy[parent] = occupancy + 1;
    availability.numFreeSlots--;
    this.#list(availability, parent, occupancy + 1);
    return 1 + (parent - 1) * this.packingOf(group) + slot;
  }

  /** Removes a partly filled parent from the sets of its current occupancy. */
  #unlist(availability: GroupAvailability, parent: LcmBlockId, occupancy: number): void {
    if (occupancy === 0 || occupancy === availability.slotsPerParent) return;
    for (let bucket = 0; bucket < availability.numBuckets; bucket++) {
      if (this.#hasFreeSlot(availability, parent, bucket)) availability.remove(parent, bucket, occupancy);
    }
  }

  #list(availability: GroupAvailability, parent: LcmBlockId, occupancy: number): void {
    if (occupancy === 0 || occupancy === availability.slotsPerParent) return;
    for (let bucket = 0; bucket < availability.numBuckets; bucket++) {
      if (this.#hasFreeSlot(availability, parent, bucket)) availability.add(parent, bucket, occupancy);
    }
  }

  #hasFreeSlot(availability: GroupAvailability, parent: LcmBlockId, bucket: number): boolean {
    return availability.numBuckets === 1 || this.#freeSlotFrom(availability, parent, bucket) >= 0;
  }

  #lowestFreeSlot(group: GroupId, parent: LcmBlockId, bucket: number): number {
    const slot = this.#freeSlotFrom(this.#groups[group], parent, bucket);
    if (slot < 0) broken(`LCM block ${parent} is listed for bucket ${bucket} without a free slot in it`);
    return slot;
  }

  #freeSlotFrom(availability: GroupAvailability, parent: LcmBlockId, bucket: number): number {
    const words = parent * this.#wordsPerParent;
    if (availability.numBuckets === 1) {
      for (let word = 0; word * 32 < availability.slotsPerParent; word++) {
        const free = ~this.#slotWords[words + word];
        if (free === 0) continue;
        const slot = word * 32 + 31 - Math.clz32(free & -free);
        return slot < availability.slotsPerParent ? slot : -1;
      }
      return -1;
    }
    for (let slot = bucket; slot < availability.slotsPerParent; slot += availability.numBuckets) {
      if ((this.#slotWords[words + (slot >>> 5)] & (1 << (slot & 31))) === 0) return slot;
    }
    return -1;
  }
}
