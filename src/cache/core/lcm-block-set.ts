/**
 * A set of LCM block ids that answers "lowest member" in O(log32 n):
 * a bitmap, with a bitmap of its non-empty words above it, and so on.
 */
export class LcmBlockSet {
  readonly #levels: Int32Array[] = [];
  size = 0;

  /** Holds ids 0..maxId. */
  constructor(maxId: number) {
    let words = maxId + 1;
    do {
      words = Math.ceil(words / 32);
      this.#levels.push(new Int32Array(words));
    } while (words > 1);
  }

  has(id: number): boolean {
    return (this.#levels[0][id >>> 5] & (1 << (id & 31))) !== 0;
  }

  /** Adds an id that is not a member. */
  add(id: number): void {
    let index = id;
    for (const level of this.#levels) {
      const word = level[index >>> 5];
      level[index >>> 5] = word | (1 << (index & 31));
      if (word !== 0) break;
      index >>>= 5;
    }
    this.size++;
  }

  /** Removes a member. */
  remove(id: number): void {
    let index = id;
    for (const level of this.#levels) {
      const word = level[index >>> 5] & ~(1 << (index & 31));
      level[index >>> 5] = word;
      if (word !== 0) break;
      index >>>= 5;
    }
    this.size--;
  }

  /** The lowest member, -1 when empty. */
  first(): number {
    let index = 0;
    for (let depth = this.#levels.length - 1; depth >= 0; depth--) {
      const word = this.#levels[depth][index];
      if (word === 0) return -1;
      index = index * 32 + 31 - Math.clz32(word & -word);
    }
    return index;
  }
}
