/**
 * Live requests by a key, id or handle: open addressing that doubles, and shrinks after a burst. A Map makes
 * a new table every few requests that come and go, and each of those keeps its successor alive until the next
 * full collection.
 */
import type { Request } from "./request";

const smallestNumSlots = 64;

export class RequestTable<Key extends string | number> {
  readonly #keyOf: (request: Request) => Key;
  #slots: (Request | undefined)[] = emptySlots(smallestNumSlots);
  #hashes = new Int32Array(smallestNumSlots);
  #size = 0;

  constructor(keyOf: (request: Request) => Key) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#size;
  }

  /** Requests that it has room for before it grows. */
  get capacity(): number {
    return this.#slots.length / 2;
  }

  /** The most slots in a row without a gap: what a search may have to walk. For tests and tools. */
  get longestRun(): number {
    let longest = 0;
    let run = 0;
    for (const request of this.#slots) {
      run = request === undefined ? 0 : run + 1;
      if (run > longest) longest = run;
    }
    return longest;
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
    if (this.#size * 2 >= this.#slots.length) this.#resize(this.#slots.length * 2);
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
    // Far below the size at which it grew, so that a steady coming and going moves nothing.
    if (slots.length > smallestNumSlots && this.#size * 8 < slots.length) this.#resize(slots.length / 2);
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

  #resize(capacity: number): void {
    const slots = this.#slots;
    const hashes = this.#hashes;
    this.#slots = emptySlots(capacity);
    this.#hashes = new Int32Array(capacity);
    for (let slot = 0; slot < slots.length; slot++) {
      const request = slots[slot];
      if (request !== undefined) this.#put(request, hashes[slot]);
    }
  }
}

function emptySlots(capacity: number): (Request | undefined)[] {
  return new Array<Request | undefined>(capacity).fill(undefined);
}

/**
 * Handles are issued in sequence: as they are, those of a queue would lie in one long run of slots that every
 * search behind it walks to the end. So are ids that end in a number, nearly.
 */
function hashOf(key: string | number): number {
  let hash = 0x811c9dc5 | 0;
  if (typeof key === "number") hash = key;
  else for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
