/**
 * Which blocks the far storage is believed to hold: a bounded set of keys, oldest insertion out first. A
 * belief and not a lease: a key can be gone when it is read.
 */
import type { GroupId } from "../core/ids";
import { DigestStore, DigestTable } from "../prefix/digest-table";

/** One key of a call, its digest at digests[at...]. */
export interface StorageKey {
  readonly group: GroupId;
  readonly digests: Int32Array;
  readonly at: number;
  readonly pageOffset: number;
}

export class StorageKeyShadow {
  readonly #capacity: number;
  readonly #numGroups: number;
  readonly #store: DigestStore;
  readonly #table: DigestTable;
  /** Doubly linked by age; 0 is both ends. */
  readonly #older: Int32Array;
  readonly #newer: Int32Array;
  readonly #callStamps: Float64Array;
  #call = 0;
  #freeIds: number[] = [];
  #nextId = 1;

  constructor(capacity: number, numGroups: number) {
    this.#capacity = Math.max(capacity, 1);
    this.#numGroups = numGroups;
    this.#store = new DigestStore(this.#capacity);
    this.#table = new DigestTable(this.#store, this.#capacity);
    this.#older = new Int32Array(this.#capacity + 1);
    this.#newer = new Int32Array(this.#capacity + 1);
    this.#callStamps = new Float64Array(this.#capacity + 1);
  }

  get size(): number {
    return this.#table.size;
  }

  has(group: GroupId, digests: Int32Array, at: number, pageOffset: number): boolean {
    return this.#table.find(digests, at, this.#ordinal(group, pageOffset)) !== 0;
  }

  /** Adds keys in order of value; those beyond the capacity are left out, older keys make room. */
  register(keys: readonly StorageKey[]): void {
    this.#call++;
    const kept = keys.slice(0, this.#capacity);
    for (const key of kept) {
      const id = this.#find(key);
      if (id !== 0) this.#callStamps[id] = this.#call;
    }
    for (const key of kept) if (this.#find(key) === 0) this.#insert(key);
  }

  /** Adds one key, in place of the oldest when full. */
  add(group: GroupId, digests: Int32Array, at: number, pageOffset: number): void {
    this.#call++;
    if (!this.has(group, digests, at, pageOffset)) this.#insert({ group, digests, at, pageOffset });
  }

  remove(group: GroupId, digests: Int32Array, at: number, pageOffset: number): void {
    const id = this.#find({ group, digests, at, pageOffset });
    if (id !== 0) this.#drop(id);
  }

  clear(): void {
    while (this.#newer[0] !== 0) this.#drop(this.#newer[0]);
  }

  #ordinal(group: GroupId, pageOffset: number): number {
    return pageOffset * this.#numGroups + group;
  }

  #find(key: StorageKey): number {
    return this.#table.find(key.digests, key.at, this.#ordinal(key.group, key.pageOffset));
  }

  #insert(key: StorageKey): void {
    if (this.size >= this.#capacity) {
      let oldest = this.#newer[0];
      while (this.#callStamps[oldest] === this.#call) oldest = this.#newer[oldest];
      this.#drop(oldest);
    }
    const id = this.#freeIds.pop() ?? this.#nextId++;
    this.#store.put(id, key.digests, key.at, this.#ordinal(key.group, key.pageOffset));
    this.#table.add(id);
    this.#callStamps[id] = this.#call;
    const youngest = this.#older[0];
    this.#newer[youngest] = id;
    this.#older[id] = youngest;
    this.#newer[id] = 0;
    this.#older[0] = id;
  }

  #drop(id: number): void {
    this.#table.remove(id);
    this.#newer[this.#older[id]] = this.#newer[id];
    this.#older[this.#newer[id]] = this.#older[id];
    this.#freeIds.push(id);
  }
}
