/** The shadow of storage keys against a plain list. */
import { expect, test } from "bun:test";
import { StorageKeyShadow } from "../../../src/cache/tier/storage-key-shadow";
import { Random } from "../../sim/random";

test("a shadow of storage keys forgets as a list of them does", () => {
  const capacity = 6;
  const random = new Random(4);
  const shadow = new StorageKeyShadow(capacity, 2);
  let twin: string[] = [];
  const draw = () => ({
    group: random.int(0, 1),
    digests: Int32Array.of(random.int(0, 4), 0, 0, 0, 0, 0, 0, 7),
    at: 0,
    pageOffset: random.int(0, 1),
  });
  const nameOf = ({ group, digests, pageOffset }: ReturnType<typeof draw>) =>
    `${group} ${digests[0]} ${pageOffset}`;
  for (let step = 0; step < 4000; step++) {
    const keys = Array.from({ length: random.int(1, 9) }, draw);
    if (random.chance(0.3)) {
      for (const { group, digests, at, pageOffset } of keys) shadow.remove(group, digests, at, pageOffset);
      twin = twin.filter((name) => !keys.some((key) => nameOf(key) === name));
    } else {
      shadow.register(keys);
      const kept = keys.slice(0, capacity).map(nameOf);
      for (const name of kept) {
        if (twin.includes(name)) continue;
        if (twin.length >= capacity)
          twin.splice(
            twin.findIndex((old) => !kept.includes(old)),
            1,
          );
        twin.push(name);
      }
    }
    expect(shadow.size).toBe(twin.length);
    for (let i = 0; i < 5; i++) {
      const key = draw();
      expect(shadow.has(key.group, key.digests, 0, key.pageOffset)).toBe(twin.includes(nameOf(key)));
    }
  }
  shadow.clear();
  expect(shadow.size).toBe(0);
});
