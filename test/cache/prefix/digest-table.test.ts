/** The digest table against a Map, with keys that share their place. */
import { expect, test } from "bun:test";
import { DigestStore, DigestTable } from "../../../src/cache/prefix/digest-table";
import { Random } from "../../sim/random";

const sizes = { "sized for all": 200, "that grows from the smallest": 1 };

test.each(Object.entries(sizes))(
  "a digest table %s finds what a Map finds, through collisions and deletions",
  (_, numAtFirst) => {
    const maxBlocks = 200;
    const random = new Random(11);
    const store = new DigestStore(maxBlocks);
    const table = new DigestTable(store, numAtFirst);
    const twin = new Map<string, number>();
    const blockKeys = new Map<number, string>();
    // Few first words, so that keys share their place and differ only further in.
    const draw = () => ({
      words: Int32Array.from({ length: 8 }, (_, i) =>
        i === 0 ? random.int(0, 3) : i === 7 ? random.int(0, 40) : 0,
      ),
      offset: random.int(0, 2),
    });
    for (let step = 0; step < 20_000; step++) {
      const { words, offset } = draw();
      const key = `${words.join()}#${offset}`;
      expect(table.find(words, 0, offset)).toBe(twin.get(key) ?? 0);
      const known = twin.get(key);
      if (known !== undefined && random.chance(0.6)) {
        table.remove(known);
        twin.delete(key);
        blockKeys.delete(known);
      } else if (known === undefined && twin.size < maxBlocks) {
        let block = random.int(1, maxBlocks);
        while (blockKeys.has(block)) block = (block % maxBlocks) + 1;
        store.put(block, words, 0, offset);
        table.add(block);
        twin.set(key, block);
        blockKeys.set(block, key);
      }
      expect(table.size).toBe(twin.size);
    }
  },
);
