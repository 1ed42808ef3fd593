/** The obvious block pool: parents as arrays of slots, every choice by looking at all of them. */

export interface NaiveBlock {
  readonly group: number;
  readonly parent: number;
  readonly slot: number;
  readonly id: number;
  owners: number;
}

interface Parent {
  group: number;
  readonly slots: (NaiveBlock | undefined)[];
}

export class NaivePool {
  readonly packings: readonly number[];
  readonly parents: Parent[] = [];
  /** Empty parents, oldest first. */
  empty: number[] = [];

  constructor(numParents: number, packings: readonly number[]) {
    this.packings = packings;
    for (let id = 0; id <= numParents; id++) this.parents.push({ group: -1, slots: [] });
    this.empty = Array.from({ length: numParents }, (_, i) => i + 1);
  }

  occupancy(parent: number): number {
    return this.parents[parent].slots.filter((slot) => slot !== undefined).length;
  }

  occupants(parent: number): NaiveBlock[] {
    return this.parents[parent].slots.filter((slot) => slot !== undefined);
  }

  freeSlots(group: number): number {
    return this.parents.reduce(
      (sum, parent, id) => (parent.group === group ? sum + this.packings[group] - this.occupancy(id) : sum),
      0,
    );
  }

  /**
   * One block by the exact order: least loaded shard, fullest parent, lowest parent, lowest slot, else the
   * oldest empty.
   */
  acquire(group: number, loads?: readonly number[]): NaiveBlock | undefined {
    const shards = loads?.length ?? 1;
    let best: number[] | undefined;
    this.parents.forEach((parent, id) => {
      if (parent.group !== group) return;
      for (let slot = 0; slot < this.packings[group]; slot++) {
        if (parent.slots[slot] !== undefined) continue;
        const shard = slot % shards;
        const rank = [loads?.[shard] ?? 0, loads === undefined ? 0 : shard, -this.occupancy(id), id, slot];
        if (best === undefined || isLess(rank, best)) best = rank;
      }
    });
    if (best !== undefined) return this.#occupy(group, best[3], best[4]);
    const parent = this.empty.shift();
    if (parent === undefined) return undefined;
    this.parents[parent].group = group;
    const slot = loads === undefined ? 0 : loads.indexOf(Math.min(...loads));
    return this.#occupy(group, parent, slot);
  }

  release(block: NaiveBlock): void {
    if (--block.owners > 0) return;
    this.parents[block.parent].slots[block.slot] = undefined;
    if (this.occupancy(block.parent) > 0) return;
    this.parents[block.parent].group = -1;
    this.empty.push(block.parent);
  }

  #occupy(group: number, parent: number, slot: number): NaiveBlock {
    const id = 1 + (parent - 1) * this.packings[group] + slot;
    const block = { group, parent, slot, id, owners: 1 };
    this.parents[parent].slots[slot] = block;
    return block;
  }
}

/** Lexicographic order of equally long lists. */
export function isLess(a: readonly number[], b: readonly number[]): boolean {
  const i = a.findIndex((value, at) => value !== b[at]);
  return i >= 0 && a[i] < b[i];
}
