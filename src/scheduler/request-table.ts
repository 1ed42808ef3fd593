/**
 * Live requests by a key, id or handle: open addressing that grows by doubling. A Map makes a new table every
 * few requests that come and go, and each of those keeps its successor alive until the next full collection.
 */
import type { Request } from "./request";

const smallestCapacity = 64;

export class RequestTable<Key extends string | number> {
  readonly #keyOf: (request: Request) => Key;
  #slots: (Request | undefined)[] = emptySlots(smallestCapacity);
  #hashes = new Int32Array(smallestCapacity);
  #size = 0;

  constructor(keyOf: (request: Request) => Key) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#size;
  }

  get(key: Key): Request | undefined {
    const hash = hashOf(key);
    const mask = this.#slots.length - 1;
    for (let slot = hash & mask; ; slot = (slot + 1) & mask) {
      const request = this.#slots[slot];
      if (request === undefined) return undefined;
      if (this.#hashes[slot] === hash && this.#keyOf(request) === key) return request;
    }
  }

  /** Adds a request whose key is not in the table. */
  add(request: Request): void {
    if (this.#size * 2 >= this.#slots.length) this.#grow();
    this.#put(request, hashOf(this.#keyOf(request)));
    this.#size++;
  }

  /** Removes a request that is in the table. */
  remove(request: Request): void {
    const slots = this.#slots;
    const hashes = this.#hashes;
    const mask = slots.length - 1;
    let gap = hashOf(this.#keyOf(request)) & mask;
    while (slots[gap] !== request) gap = (gap + 1) & mask;
    for (let slot = (gap + 1) & mask; slots[slot] !== undefined; slot = (slot + 1) & mask) {
      const home = hashes[slot] & mask;
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      slots[gap] = slots[slot];
      hashes[gap] = hashes[slot];
      gap = slot;
    }
    slots[gap] = undefined;
    this.#size--;
  }

  /** Every request, in no order that means anything. */
  *values(): IterableIterator<Request> {
    for (const request of this.#slots) if (request !== undefined) yield request;
  }

  #put(request: Request, hash: number): void {
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    while (this.#slots[slot] !== undefined) slot = (slot + 1) & mask;
    this.#slots[slot] = request;
    this.#hashes[slot] = hash;
  }

  #grow(): void {
    const slots = this.#slots;
    const hashes = this.#hashes;
    this.#slots = emptySlots(slots.length * 2);
    this.#hashes = new Int32Array(slots.length * 2);
    for (let slot = 0; slot < slots.length; slot++) {
      const request = slots[slot];
      if (request !== undefined) this.#put(request, hashes[slot]);
    }
  }
}

function emptySlots(capacity: number): (Request | undefined)[] {
  return new Array<Request | undefined>(capacity).fill(undefined);
}

/** Handles are issued in sequence, so their low bits are a good hash as they are. */
function hashOf(key: string | number): number {
  if (typeof key === "number") return key | 0;
  let hash = 0x811c9dc5 | 0;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return hash ^ (hash >>> 15);
}
