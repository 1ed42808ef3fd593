/** The eviction order against a scan that sorts every entry anew. */
import { expect, test } from "bun:test";
import { BlockPool } from "../../../src/cache/core/block-pool";
import { CacheBlockRefs } from "../../../src/cache/core/cache-block-refs";
import { LcmCensus } from "../../../src/cache/core/lcm-census";
import { EvictionCursor } from "../../../src/cache/prefix/eviction-cursor";
import {
  type BoundaryKind,
  type IndexRanking,
  PrefixCacheIndex,
} from "../../../src/cache/prefix/prefix-cache-index";
import { Random } from "../../sim/random";

interface Entry {
  block: number;
  epoch: number;
  kind: number;
  acquired: boolean;
  index: number;
  owners: number;
}

/** Place of an entry by the rule, for a scan. */
function rank(entry: Entry, ranking: IndexRanking): number[] {
  if (ranking === "prefixClosed") return [entry.epoch, 3, entry.index >= 0 ? -entry.index : 0, entry.block];
  const probationary = entry.kind === 0 && !entry.acquired && entry.index >= 0;
  return [entry.epoch, probationary ? 1 : 2, probationary ? entry.index : 0, entry.block];
}

for (const ranking of ["prefixClosed", "open"] as const) {
  test(`the order of a ${ranking} index is the order of a scan, whatever happens to its entries`, () => {
    const random = new Random(ranking.length);
    const pool = new BlockPool(120, [2]);
    const refs = new CacheBlockRefs(pool, 0, new LcmCensus(pool));
    const index = new PrefixCacheIndex(refs, ranking);
    const cursor = new EvictionCursor(index.order);
    const entries = new Map<number, Entry>();
    let nextKey = 0;
    for (let step = 0; step < 6000; step++) {
      const known = [...entries.values()];
      const some = known.length > 0 ? random.pick(known) : undefined;
      const epoch = random.chance(0.1) ? 2 ** 31 + random.int(0, 9) : random.int(1, 25);
      const what = random.int(0, 4);
      if (what === 0 || some === undefined) {
        const block = refs.acquire();
        if (block === 0) continue;
        const kind = random.int(0, 2);
        const position = random.int(-1, 12);
        const digest = Int32Array.of(nextKey++, 0, 0, 0, 0, 0, 0, 0);
        index.register(block, digest, 0, 0, kind as BoundaryKind, epoch, position);
        entries.set(block, { block, epoch, kind, acquired: false, index: position, owners: 2 });
      } else if (what === 1) {
        refs.retain(some.block);
        some.owners++;
      } else if (what === 2 && some.owners > 1) {
        refs.release(some.block);
        some.owners--;
      } else if (what === 3) {
        index.acquireMatched(some.block, epoch);
        Object.assign(some, { acquired: true, epoch, owners: some.owners + 1 });
      } else if (some.owners === 1 && random.chance(0.5)) {
        index.evict(some.block);
        entries.delete(some.block);
      }
      if (step % 7 !== 0) continue;
      const idle = [...entries.values()].filter((entry) => entry.owners === 1);
      idle.sort((a, b) => {
        const [x, y] = [rank(a, ranking), rank(b, ranking)];
        const at = x.findIndex((value, i) => value !== y[i]);
        return x[at] - y[at];
      });
      const walked: number[] = [];
      for (cursor.start(); cursor.block !== 0; cursor.advance()) walked.push(cursor.block);
      expect(walked).toEqual(idle.map((entry) => entry.block));
      expect([index.numIdle, index.numEntries]).toEqual([idle.length, entries.size]);
    }
  });
}
