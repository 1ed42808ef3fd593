/** The bitmap of LCM blocks against a plain set. */
import { expect, test } from "bun:test";
import { LcmBlockSet } from "../../../src/cache/core/lcm-block-set";
import { Random } from "../../sim/random";

test("a block set answers its lowest member as a sorted list does", () => {
  for (const maxId of [1, 31, 32, 1000, 40_000]) {
    const random = new Random(maxId);
    const set = new LcmBlockSet(maxId);
    const twin = new Set<number>();
    for (let step = 0; step < 2000; step++) {
      const id = random.int(0, maxId);
      expect(set.has(id)).toBe(twin.has(id));
      if (twin.has(id)) {
        set.remove(id);
        twin.delete(id);
      } else {
        set.add(id);
        twin.add(id);
      }
      expect(set.size).toBe(twin.size);
      if (step % 50 === 0) expect(set.first()).toBe(twin.size === 0 ? -1 : Math.min(...twin));
    }
  }
});
