/** In which order one index gives its entries up, and what the capacity views say of them. */
import { describe, expect } from "bun:test";
import { numAvailableLcmBlocks } from "../../src/cache/coordinator/capacity-views";
import { EvictionCursor } from "../../src/cache/prefix/eviction-cursor";
import { CacheDriver, chunk, endpoint, F, M } from "../cache/cache-driver";
import { Random } from "../sim/random";
import { scenario } from "./scenario";

const cacheOf = (pool: number, ...groups: ConstructorParameters<typeof CacheDriver>[0]["groups"]) =>
  new CacheDriver({ P: 4, pool, groups });
const full = (pool: number, K = 1) => cacheOf(pool, F(4, K));

describe("the eviction order of one index", () => {
  const streamed = (d: CacheDriver) => {
    const cursor = new EvictionCursor(d.index().order);
    const seen: number[] = [];
    for (cursor.start(); cursor.block !== 0; cursor.advance()) seen.push(cursor.block);
    return seen;
  };
  const withEpochs = (epochs: number[], pool = 3, held: boolean[] = []) => {
    const d = full(pool);
    const last = Math.max(...epochs);
    if (last < 1000) while (d.coordinator.issueEpoch() < last);
    const blocks = epochs.map((epoch, i) =>
      d.cache(0, d.prompt(1), 0, { epoch, index: 0, held: held[i] === true }),
    );
    return { d, blocks };
  };
  const epochsOf = (d: CacheDriver) => streamed(d).map((block) => d.index().epochOf(block));

  scenario(532, 533)("goes by epoch, and by place within one", () => {
    expect(epochsOf(withEpochs([30, 10, 20]).d)).toEqual([10, 20, 30]);
    const { d, blocks } = withEpochs([9, 7, 7, 7], 4);
    expect(streamed(d)).toEqual([...blocks.slice(1), blocks[0]]);
  });

  scenario(534, 535)("leaves out what is in use, whole epochs of it", () => {
    const { d, blocks } = withEpochs([10, 20], 3, [true, false]);
    expect(epochsOf(d)).toEqual([20]);
    d.index().refs.release(blocks[0]);
    expect(epochsOf(d)).toEqual([10, 20]);
    const many = withEpochs([1, 2, 3, 3, 3], 5, [true, true, true, false, false]);
    expect(streamed(many.d)).toEqual(many.blocks.slice(3));
  });

  scenario(536)("does not wrap at the largest epoch", () => {
    const top = Number.MAX_SAFE_INTEGER;
    expect(epochsOf(withEpochs([top, top - 1, 2 ** 31, 2 ** 32 + 1], 4).d)).toEqual([
      2 ** 31,
      2 ** 32 + 1,
      top - 1,
      top,
    ]);
  });

  scenario(537, 538)("follows hits and evictions", () => {
    const { d, blocks } = withEpochs([10, 20]);
    d.index().acquireMatched(blocks[0], 40);
    d.index().refs.release(blocks[0]);
    expect(streamed(d)).toEqual([blocks[1], blocks[0]]);
    d.index().evict(blocks[1]);
    expect(streamed(d)).toEqual([blocks[0]]);
  });

  scenario(539)("streams what a scan finds", () => {
    const random = new Random(3);
    const epochs = Array.from({ length: 40 }, () => random.int(1, 12));
    const { d, blocks } = withEpochs(
      epochs,
      40,
      epochs.map((_, i) => i % 5 === 0),
    );
    const scanned = blocks.filter((_, i) => i % 5 !== 0);
    scanned.sort((a, b) => d.index().epochOf(a) - d.index().epochOf(b) || a - b);
    expect(streamed(d)).toEqual(scanned);
  });

  scenario(540)("puts an old prompt's end before a young chunk", () => {
    const d = cacheOf(3, M(4));
    while (d.coordinator.issueEpoch() < 20);
    d.cache(0, d.prompt(1), 0, { epoch: 10, kind: endpoint });
    d.cache(0, d.prompt(1), 0, { epoch: 20, kind: chunk });
    expect(epochsOf(d)).toEqual([10, 20]);
  });
});

describe("capacity views", () => {
  scenario(421)("tell empty parents from those that only the cache holds", () => {
    const d = full(2, 2);
    const views = () => [d.empty, numAvailableLcmBlocks(d.coordinator)];
    const prompt = d.prompt(1);
    const block = d.cache(0, prompt, 0, { held: true });
    const seen = [views()];
    d.index().refs.release(block);
    seen.push(views());
    d.index().evict(block);
    seen.push(views());
    expect(seen).toEqual([
      [1, 1],
      [1, 2],
      [2, 2],
    ]);
  });
});
