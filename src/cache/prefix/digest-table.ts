/**
 * Finds a block by (digest, page offset): open addressing over block ids, the full 32 bytes compared in the
 * digest store. An index's is sized once for every block there can be, so that no round stops to grow it.
 */
import type { BlockId } from "../core/ids";

/** Digests of a tier's blocks: eight words at id * 8, and each block's ordinal inside its prefix page. */
export class DigestStore {
  readonly words: Int32Array;
  readonly pageOffsets: Int32Array;

  constructor(maxBlocks: number) {
    this.words = new Int32Array((maxBlocks + 1) * 8);
    this.pageOffsets = new Int32Array(maxBlocks + 1);
  }

  put(block: BlockId, source: Int32Array, at: number, pageOffset: number): void {
    const base = block * 8;
    for (let i = 0; i < 8; i++) this.words[base + i] = source[at + i];
    this.pageOffsets[block] = pageOffset;
  }

  holds(block: BlockId, source: Int32Array, at: number, pageOffset: number): boolean {
    if (this.pageOffsets[block] !== pageOffset) return false;
    const base = block * 8;
    for (let i = 0; i < 8; i++) {
      if (this.words[base + i] !== source[at + i]) return false;
    }
    return true;
  }
}

function keyHash(firstWord: number, pageOffset: number): number {
  return firstWord ^ Math.imul(pageOffset, 0x9e3779b1);
}

export class DigestTable {
  readonly #store: DigestStore;
  /** Two words a slot: block id (0 = free) and the key's 32-bit hash. */
  #slots: Int32Array;
  #mask: number;
  size = 0;

  /** Has room for `numBlocks` and grows when more come. */
  constructor(store: DigestStore, numBlocks: number) {
    this.#store = store;
    const capacity = 2 ** Math.ceil(Math.log2(Math.max(2, numBlocks * 2)));
    this.#slots = new Int32Array(capacity * 2);
    this.#mask = capacity - 1;
  }

  /** The block under this key, 0 when there is none. */
  find(source: Int32Array, at: number, pageOffset: number): BlockId {
    const hash = keyHash(source[at], pageOffset);
    const slots = this.#slots;
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const block = slots[slot * 2];
      if (block === 0) return 0;
      if (slots[slot * 2 + 1] === hash && this.#store.holds(block, source, at, pageOffset)) return block;
    }
  }

  /** Adds a block whose key is in the store already and not in the table. */
  add(block: BlockId): void {
    if (this.size * 2 > this.#mask) this.#grow();
    this.#put(block, this.#hashOf(block));
    this.size++;
  }

  /** Removes a block that is in the table. */
  remove(block: BlockId): void {
    const slots = this.#slots;
    let gap = this.#hashOf(block) & this.#mask;
    while (slots[gap * 2] !== block) gap = (gap + 1) & this.#mask;
    for (let slot = (gap + 1) & this.#mask; slots[slot * 2] !== 0; slot = (slot + 1) & this.#mask) {
      const home = slots[slot * 2 + 1] & this.#mask;
      if (((slot - home) & this.#mask) < ((slot - gap) & this.#mask)) continue;
      slots[gap * 2] = slots[slot * 2];
      slots[gap * 2 + 1] = slots[slot * 2 + 1];
      gap = slot;
    }
    slots[gap * 2] = 0;
    this.size--;
  }

  #put(block: BlockId, hash: number): void {
    let slot = hash & this.#mask;
    while (this.#slots[slot * 2] !== 0) slot = (slot + 1) & this.#mask;
    this.#slots[slot * 2] = block;
    this.#slots[slot * 2 + 1] = hash;
  }

  #grow(): void {
    const slots = this.#slots;
    this.#slots = new Int32Array(slots.length * 2);
    this.#mask = slots.length - 1;
    for (let at = 0; at < slots.length; at += 2) if (slots[at] !== 0) this.#put(slots[at], slots[at + 1]);
  }

  #hashOf(block: BlockId): number {
    return keyHash(this.#store.words[block * 8], this.#store.pageOffsets[block]);
  }
}
