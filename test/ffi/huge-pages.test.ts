/** Gathering scattered pages: which mappings it looks at, and that memory keeps its contents. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { anonymousRanges, HugePages } from "../../ffi/huge-pages";

const switchPath = "/sys/kernel/mm/transparent_hugepage/enabled";

const maps = `00200000-01a39000 r--p 00000000 fe:00 5308768  /opt/granary
06868000-06a22000 rw-p 00000000 00:00 0
2bd89000-2c3aa000 rw-p 00000000 00:00 0                                  [heap]
506b6400000-506f6400000 rw-p 00000000 00:00 0
600000000000-700000000000 rw-p 00000000 00:00 0
7f004fa00000-7f004fe00000 rw-p 00000000 00:00 0
7f0050000000-7f0050400000 rw-s 00000000 00:05 12                         /dev/nvidia-uvm
7f0060000000-7f0060400000 r--p 00000000 00:00 0
7ffef0979000-7ffef1c9a000 rw-p 00000000 00:00 0                          [stack]
`;

describe("the mappings that are looked at", () => {
  test("are private, writable, anonymous, no stack, no driver's reservation, in whole huge pages", () => {
    expect(anonymousRanges(maps).map(({ begin, end }) => [begin, end])).toEqual([
      [0x2be00000, 0x2c200000],
      [0x506b6400000, 0x506f6400000],
      [0x7f004fa00000, 0x7f004fe00000],
    ]);
  });
});

describe("a pass", () => {
  test("ends, leaves every byte as it was and can be made again", () => {
    const words = new Int32Array(8 * 1024 * 1024).map((_, i) => Math.imul(i, 2654435761));
    const memory = new HugePages();
    for (let pass = 0; pass < 2; pass++) {
      let numSlices = 1;
      while (!memory.slice()) numSlices++;
      expect(numSlices).toBeLessThan(100_000);
      expect(words.every((word, i) => word === Math.imul(i, 2654435761))).toBe(true);
    }
    const isOff = !existsSync(switchPath) || readFileSync(switchPath, "utf8").includes("[never]");
    if (isOff) expect(memory.numGathered).toBe(0);
  });
});
