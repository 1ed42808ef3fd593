/** Seeded storms over the whole scheduler, with its books walked and its twin beside it. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/assert";
import { CacheBlockRefs } from "../../src/cache/core/cache-block-refs";
import { smallConfigs } from "./small-configs";
import { explore } from "./small-world";
import { WorkerWorld } from "./worker-world";
import { World } from "./world";

describe("seeded storms", () => {
  test("leak nothing, read nothing foreign, agree with the twin and come to an end", () => {
    let finished = 0;
    for (let seed = 1; seed <= 40; seed++) {
      const world = new World(seed);
      for (let step = 0; step < 150; step++) world.step();
      world.drain();
      finished += world.finished;
    }
    expect(finished).toBeGreaterThan(700);
  }, 60_000);

  test("are built again from their seed", () => {
    const gauges = [0, 1].map(() => {
      const world = new World(77);
      for (let step = 0; step < 100; step++) world.step();
      return world.scheduler.gauges();
    });
    expect(gauges[0]).toEqual(gauges[1]);
  });
});

describe("storms over one half of a disaggregated deployment", () => {
  test("leak nothing, read nothing foreign and come to an end", () => {
    let finished = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const world = new WorkerWorld(seed);
      for (let step = 0; step < 150; step++) world.step();
      world.drain();
      finished += world.finished;
    }
    expect(finished).toBeGreaterThan(200);
  }, 60_000);
});

describe("a canary", () => {
  /** Skips the n-th release of a block. */
  const withSkippedRelease = (n: number, run: () => void) => {
    const { release } = CacheBlockRefs.prototype;
    let count = 0;
    CacheBlockRefs.prototype.release = function (this: CacheBlockRefs, block: number) {
      if (++count !== n) release.call(this, block);
    };
    try {
      run();
    } finally {
      CacheBlockRefs.prototype.release = release;
    }
    return count;
  };

  test("of one skipped release is caught at once", () => {
    for (const n of [1, 20, 200]) {
      const world = new World(5);
      expect(() =>
        withSkippedRelease(n, () => {
          for (let step = 0; step < 400; step++) world.step();
          world.drain();
        }),
      ).toThrow(InvariantError);
    }
  });
});

describe("small worlds", () => {
  for (const [name, config] of smallConfigs) {
    test(`of ${name} agree with the twin in every history of six actions`, () => {
      expect(explore(config, 6)).toBeGreaterThan(7000);
    }, 60_000);
  }
});
