/** The obvious reuse index: a Map from a text key to an entry object. */
import type { NaiveBlock, NaivePool } from "./naive-pool";

export interface NaiveEntry {
  readonly key: string;
  readonly block: NaiveBlock;
  readonly index: number;
  kind: number;
  epoch: number;
  acquired: boolean;
  worthHost: boolean;
}

export class NaiveIndex {
  readonly entries = new Map<string, NaiveEntry>();
  readonly #byBlock = new Map<NaiveBlock, NaiveEntry>();
  readonly #pool: NaivePool;

  constructor(pool: NaivePool) {
    this.#pool = pool;
  }

  entryOf(block: NaiveBlock): NaiveEntry | undefined {
    return this.#byBlock.get(block);
  }

  register(block: NaiveBlock, key: string, kind: number, epoch: number, index: number): NaiveBlock {
    const known = this.entries.get(key);
    if (known !== undefined) {
      known.kind = Math.max(known.kind, kind);
      known.epoch = epoch;
      return known.block;
    }
    const entry = { key, block, index, kind, epoch, acquired: false, worthHost: true };
    block.owners++;
    this.entries.set(key, entry);
    this.#byBlock.set(block, entry);
    return block;
  }

  acquire(key: string, epoch: number): NaiveBlock {
    const entry = this.entries.get(key);
    if (entry === undefined) throw new Error(`no entry ${key}`);
    entry.acquired = true;
    entry.epoch = epoch;
    entry.block.owners++;
    return entry.block;
  }

  evict(entry: NaiveEntry): void {
    this.entries.delete(entry.key);
    this.#byBlock.delete(entry.block);
    this.#pool.release(entry.block);
  }
}
