/** Where blocks lie in the pool, who owns them, and which slot a request holds. */
import { describe, expect } from "bun:test";
import { BlockPool } from "../../src/cache/core/block-pool";
import { CacheBlockRefs } from "../../src/cache/core/cache-block-refs";
import { LcmCensus } from "../../src/cache/core/lcm-census";
import { RequestSlots } from "../../src/scheduler/request-slots";
import { Random } from "../sim/random";
import { type NaiveBlock, NaivePool } from "../twin/naive-pool";
import { scenario } from "./scenario";

/** "parent/slot" of a block. */
const at = (pool: BlockPool, group: number, block: number) =>
  `${pool.parentOf(group, block)}/${pool.slotOf(group, block)}`;
const take = (pool: BlockPool, group: number, count: number) =>
  Array.from({ length: count }, () => pool.acquire(group));
/** All or nothing, as allocators take a batch. */
const batch = (pool: BlockPool, group: number, count: number) =>
  pool.canAcquire(group, count) ? take(pool, group, count) : [];

describe("the block pool", () => {
  scenario(1)("begins with every parent empty", () => {
    const pool = new BlockPool(8, [1]);
    expect([pool.numLcmBlocks, pool.numEmpty]).toEqual([8, 8]);
  });

  scenario(2)(
    "leaves nothing behind when its last owner lets go, and says so when one still holds on",
    () => {
      const pool = new BlockPool(1, [1]);
      const refs = new CacheBlockRefs(pool, 0, new LcmCensus(pool));
      const block = refs.acquire();
      expect(refs.numHeld).toBe(1);
      refs.release(block);
      expect([refs.numHeld, pool.numEmpty]).toEqual([0, 1]);
    },
  );

  scenario(3)("gives a batch whole or not at all", () => {
    const pool = new BlockPool(3, [1]);
    expect(batch(pool, 0, 4)).toEqual([]);
    expect(pool.numEmpty).toBe(3);
    expect(batch(pool, 0, 3)).toHaveLength(3);
    expect(pool.numEmpty).toBe(0);
  });

  scenario(4)("binds an empty parent to the group of its first child", () => {
    const pool = new BlockPool(3, [1, 2]);
    const block = pool.acquire(1);
    expect([at(pool, 1, block), pool.groupOf(1), pool.occupancyOf(1)]).toEqual(["1/0", 1, 1]);
  });

  scenario(5)("keeps a group's packing and shards for good", () => {
    const pool = new BlockPool(1, [4]);
    pool.release(0, pool.acquire(0));
    expect(pool.packingOf(0)).toBe(4);
    expect(() => pool.registerShards(0, 2)).toThrow("fixed");
    const sharded = new BlockPool(1, [4]);
    sharded.registerShards(0, 2);
    expect(() => sharded.registerShards(0, 4)).toThrow("fixed");
    expect(() => new BlockPool(1, [4]).registerShards(0, 3)).toThrow("does not divide");
  });

  scenario(6)("leaves a partly filled parent alone when it falls short", () => {
    const pool = new BlockPool(1, [2]);
    const held = pool.acquire(0);
    expect(batch(pool, 0, 2)).toEqual([]);
    expect([pool.groupOf(1), pool.occupancyOf(1), pool.isOccupied(0, held)]).toEqual([0, 1, true]);
  });

  scenario(7)("gives a parent to another group once its last child is gone", () => {
    const pool = new BlockPool(1, [2, 8]);
    const held = pool.acquire(0);
    expect(pool.acquire(1)).toBe(0);
    pool.release(0, held);
    expect(pool.groupOf(1)).toBe(-1);
    expect(at(pool, 1, pool.acquire(1))).toBe("1/0");
    expect(pool.groupOf(1)).toBe(1);
  });

  scenario(8)("has its capacity back after releases", () => {
    const pool = new BlockPool(2, [1, 1]);
    for (const block of take(pool, 0, 2)) pool.release(0, block);
    expect(batch(pool, 1, 2)).toHaveLength(2);
    expect(pool.numEmpty).toBe(0);
  });

  scenario(9)("reopens parents in the order in which they became empty", () => {
    const pool = new BlockPool(4, [1]);
    const held = take(pool, 0, 4);
    pool.release(0, held[0]);
    pool.release(0, held[2]);
    expect(take(pool, 0, 2)).toEqual([held[0], held[2]]);
  });

  scenario(10, 11)("lets children share a parent and reuses exactly the slot that was freed", () => {
    const pool = new BlockPool(1, [2]);
    const [a, b] = take(pool, 0, 2);
    expect([at(pool, 0, a), at(pool, 0, b), pool.occupancyOf(1)]).toEqual(["1/0", "1/1", 2]);
    pool.release(0, a);
    expect(pool.acquire(0)).toBe(a);
    expect(pool.isOccupied(0, b)).toBe(true);
  });

  scenario(12)("fills the fullest parent before it opens another", () => {
    const pool = new BlockPool(3, [3]);
    const [first] = take(pool, 0, 4);
    pool.release(0, first);
    expect(take(pool, 0, 4).map((block) => pool.parentOf(0, block))).toEqual([1, 2, 2, 3]);
  });

  scenario(13)("unbinds a parent with its last release", () => {
    const pool = new BlockPool(1, [8]);
    pool.release(0, pool.acquire(0));
    expect([pool.groupOf(1), pool.numEmpty]).toEqual([-1, 1]);
  });

  scenario(416)("counts a group's free slots and nobody else's", () => {
    const pool = new BlockPool(2, [3, 1]);
    const seen = Array.from({ length: 4 }, () => {
      pool.acquire(0);
      return [pool.freeSlotsOf(0), pool.numEmpty];
    });
    expect(seen).toEqual([
      [2, 1],
      [1, 1],
      [0, 1],
      [2, 0],
    ]);
    expect(pool.freeSlotsOf(1)).toBe(0);
  });

  scenario(417)("refuses a packing of nothing and ids that do not fit", () => {
    expect(() => new BlockPool(1, [0])).toThrow("must be positive");
    expect(() => new BlockPool(0x4000_0000, [4])).toThrow("int32");
  });

  scenario(418)("gives what is left to a caller that takes less", () => {
    const pool = new BlockPool(2, [2]);
    take(pool, 0, 3);
    expect(batch(pool, 0, 3)).toEqual([]);
    expect(take(pool, 0, 3).filter((block) => block !== 0)).toHaveLength(1);
  });

  scenario(419)("prefers the densest parent, then the lowest id, then the lowest slot", () => {
    const pool = new BlockPool(3, [4]);
    const held = take(pool, 0, 12);
    for (const block of held) if (["1/3", "3/2", "3/3"].includes(at(pool, 0, block))) pool.release(0, block);
    expect(take(pool, 0, 3).map((block) => at(pool, 0, block))).toEqual(["1/3", "3/2", "3/3"]);
  });

  scenario(420)("scopes free slots to the group that owns the parent", () => {
    const pool = new BlockPool(4, [1, 4, 2]);
    take(pool, 1, 5);
    take(pool, 2, 1);
    expect([0, 1, 2].map((group) => pool.freeSlotsOf(group))).toEqual([0, 3, 1]);
    expect(pool.numEmpty).toBe(1);
  });

  scenario(422)("says what each group could take alone", () => {
    const pool = new BlockPool(3, [4, 2]);
    const views = () => [pool.availableOf(0), pool.availableOf(1)];
    const seen = [views()];
    pool.acquire(0);
    seen.push(views());
    pool.acquire(1);
    seen.push(views());
    expect(seen).toEqual([
      [12, 6],
      [11, 4],
      [7, 3],
    ]);
  });

  /** Random lives of blocks against the exhaustive twin. */
  const churn = (packings: number[], shards: number[], parents: number, seed: number, steps: number) => {
    const random = new Random(seed);
    const pool = new BlockPool(parents, packings);
    const twin = new NaivePool(parents, packings);
    shards.forEach((count, group) => {
      pool.registerShards(group, count);
    });
    const held: [number, number, NaiveBlock][] = [];
    for (let step = 0; step < steps; step++) {
      if (held.length > 0 && random.chance(0.45)) {
        const [[group, block, twinBlock]] = held.splice(random.int(0, held.length - 1), 1);
        pool.release(group, block);
        twin.release(twinBlock);
        continue;
      }
      const group = random.int(0, packings.length - 1);
      const loads =
        shards[group] > 1 ? Array.from({ length: shards[group] }, () => random.int(0, 3)) : undefined;
      const given = loads === undefined ? undefined : Int32Array.from(loads);
      const block = pool.acquire(group, given);
      const twinBlock = twin.acquire(group, loads);
      expect(block).toBe(twinBlock?.id ?? 0);
      if (given !== undefined) expect(Array.from(given)).toEqual(loads ?? []);
      if (twinBlock !== undefined) held.push([group, block, twinBlock]);
    }
  };

  scenario(423)("chooses as an exhaustive search does, shard loads included", () => {
    for (const seed of [0, 17, 2026]) churn([8, 16, 1], [2, 8, 1], 24, seed, 1200);
  });

  scenario(424)("chooses as a full scan does under churn", () => {
    churn([1, 3, 4], [1, 1, 1], 40, 5, 4000);
    churn([40, 70], [1, 1], 9, 6, 2000);
  });
});

describe("shared ownership of a block", () => {
  const four = (packing = 1, parents = 4) => {
    const pool = new BlockPool(parents, [packing]);
    const census = new LcmCensus(pool);
    return { pool, census, refs: new CacheBlockRefs(pool, 0, census) };
  };

  scenario(14, 15)("begins with one owner and ends with the last", () => {
    const { pool, refs } = four();
    const block = refs.acquire();
    expect([refs.ownersOf(block), pool.numEmpty]).toEqual([1, 3]);
    refs.retain(block);
    expect(refs.ownersOf(block)).toBe(2);
    refs.release(block);
    expect([refs.ownersOf(block), pool.isOccupied(0, block)]).toEqual([1, true]);
    refs.release(block);
    expect([refs.ownersOf(block), pool.numEmpty]).toEqual([0, 4]);
  });

  scenario(
    16,
    17,
    18,
    20,
  )("moves with the id: whoever overwrites a held id releases it first", () => {
    const { pool, refs } = four();
    let [mine, other] = [refs.acquire(), refs.acquire()];
    refs.release(other);
    other = mine;
    refs.retain(other);
    expect([refs.ownersOf(mine), pool.numEmpty]).toEqual([2, 3]);
    [mine, other] = [other, mine];
    expect(refs.ownersOf(mine)).toBe(2);
  });

  scenario(19)("treats the null block as nobody's", () => {
    const { refs } = four();
    expect(refs.ownersOf(0)).toBe(0);
    expect(() => refs.retain(0)).toThrow("no owner to share");
    expect(() => refs.release(0)).toThrow("more often than it was held");
  });

  scenario(21, 22)("counts every owner", () => {
    const { pool, refs } = four();
    const block = refs.acquire();
    for (let i = 0; i < 8; i++) refs.retain(block);
    expect(refs.ownersOf(block)).toBe(9);
    for (let i = 0; i < 8; i++) refs.release(block);
    expect([refs.ownersOf(block), pool.numEmpty]).toEqual([1, 3]);
    refs.release(block);
    expect(pool.numEmpty).toBe(4);
    expect(() => refs.release(block)).toThrow("more often");
  });

  scenario(23)("holds the very slot until its last owner is gone", () => {
    const { pool, refs } = four(2, 1);
    const block = refs.acquire();
    refs.retain(block);
    refs.release(block);
    expect([pool.isOccupied(0, block), pool.groupOf(1)]).toEqual([true, 0]);
    refs.release(block);
    expect(pool.groupOf(1)).toBe(-1);
  });
});

describe("request slots", () => {
  scenario(43, 44)("are lent and come back, the longest free first", () => {
    const slots = new RequestSlots(2);
    const [a, b] = [slots.take(), slots.take()];
    expect([a, b, slots.take(), slots.numFree]).toEqual([1, 2, 0, 0]);
    slots.give(b);
    slots.give(a);
    expect([slots.numFree, slots.take(), slots.take()]).toEqual([2, 2, 1]);
  });
});
