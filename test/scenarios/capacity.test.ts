/** What the capacity model says a request needs, block by block, against figures worked out by hand. */
import { describe, expect } from "bun:test";
import { CapacityModel } from "../../src/scheduler/capacity-model";
import { Scheduler } from "../../src/scheduler/scheduler";
import { configOf, Driver, F, M, type Setup, tokens, W } from "../scheduler/driver";
import { scenario } from "./scenario";

const model = (setup: Partial<Setup> & Pick<Setup, "P" | "groups">) =>
  new CapacityModel(configOf({ pool: 0, ...setup }));
const mixed = { P: 64, T: 8192, w: 4, depth: 1, B: 16, groups: [F(64, 12), M(64), W(128, 64, 3)] };

describe("the capacity model", () => {
  scenario(394)("sizes a pool for a concurrency, group by group", () => {
    const fused = model(mixed);
    expect(fused.concurrentBlocks(65536, 4096)).toEqual([1056, 64, 194]);
    expect(fused.singleRequestBlocks(4096)).toEqual([65, 4, 65]);
    expect(fused.lcmBlocksNeededFor([1056, 64, 194])).toBe(217);
  });

  scenario(395)("needs neither overlap nor growth on a prefill worker", () => {
    expect(model({ ...mixed, role: "prefill" }).concurrentBlocks(65536, 4096)).toEqual([1040, 48, 194]);
  });

  scenario(396)("folds blocks into the parents that hold them", () => {
    expect(model({ P: 64, groups: [F(64, 12), M(64)] }).lcmBlocksNeededFor([25, 3])).toBe(6);
  });

  scenario(397, 399)("exists before its pools do", () => {
    expect(model({ P: 4, groups: [F(4)] }).singleRequestBlocks(8)).toEqual([2]);
    expect(() => new Scheduler(configOf({ P: 4, pool: 0, groups: [F(4)] }))).toThrow("device cache");
    const l3 = configOf({ P: 4, pool: 4, enableL3Storage: true, groups: [F(4)] });
    expect(new CapacityModel(l3).singleRequestBlocks(4)).toEqual([1]);
    expect(() => new Scheduler(l3)).toThrow("needs a Host cache");
  });

  scenario(398)("refuses an overlap of two steps", () => {
    expect(() => model({ P: 4, depth: 2, groups: [F(4)] })).toThrow("overlapScheduleDepth");
  });

  scenario(400)("bounds single requests as the scheduler does, and never above a concurrency of one", () => {
    const shapes = [[F(4)], [F(4, 2), M(2)], [F(4, 3), W(5, 4), W(9, 2, 2)], [W(3, 4), M(4)]];
    for (const role of ["fused", "prefill", "decode"] as const)
      for (const T of [4, 8, 9, 16])
        for (const w of [1, 3])
          for (const depth of [0, 1])
            for (const disablePrefixCache of [true, false])
              for (const groups of shapes) {
                const setup = { P: 4, pool: 2, T, w, depth, role, disablePrefixCache, groups };
                const capacity = new CapacityModel(configOf(setup));
                for (let limit = 0; limit <= 64; limit++) {
                  const single = capacity.singleRequestBlocks(limit);
                  const concurrent = capacity.concurrentBlocks(limit, limit, 1);
                  for (const [g, blocks] of single.entries())
                    expect(concurrent[g]).toBeGreaterThanOrEqual(blocks);
                }
                const pool = 2 + ((T + w) % 11);
                const scheduler = new Scheduler(configOf({ ...setup, pool }));
                expect(scheduler.maxSingleRequestTokens).toBe(capacity.maxSingleRequestTokens(pool));
              }
  });

  scenario(404, 230)("bounds prompt and generation together on a decode worker", () => {
    const d = new Driver({ P: 2, pool: 3, T: 8, role: "decode", groups: [F(2)] });
    expect(d.scheduler.maxSingleRequestTokens).toBe(6);
    expect(() => d.submit("a", tokens(4), { maxNewTokens: 4 })).toThrow("can carry 6");
  });

  scenario(405, 231)("bounds the prompt alone on a prefill worker", () => {
    const d = new Driver({ P: 2, pool: 3, T: 8, role: "prefill", groups: [F(2)] });
    expect(d.scheduler.maxSingleRequestTokens).toBe(6);
    expect(d.submit("a", tokens(6), { maxNewTokens: 100 })).toBe(1);
  });

  scenario(406, 226)("does not look at the Host", () => {
    const limit = (host: number) =>
      new Driver({ P: 2, pool: 8, host, role: "decode", groups: [F(2)] }).scheduler.maxSingleRequestTokens;
    expect(limit(1)).toBe(limit(63));
  });

  scenario(225)("lets a decode worker run without a Host", () => {
    for (const more of [{ disableL2Cache: true, host: 8 }, { host: 0 }]) {
      const d = new Driver({ P: 2, pool: 8, role: "decode", groups: [F(2)], ...more });
      expect(d.scheduler.gauges().hostEmptyLcmBlocks).toBe(0);
    }
  });

  scenario(329)("bounds a window on a decode worker by what the window keeps", () => {
    const d = new Driver({ P: 4, pool: 2, T: 16, role: "decode", groups: [W(4, 2, 2)] });
    expect(d.scheduler.maxSingleRequestTokens).toBe(8);
  });

  scenario(292)("counts a local recovery's snapshots on a decode worker", () => {
    const d = new Driver({ P: 2, pool: 8, host: 31, T: 8, role: "decode", groups: [F(2, 2), M(2)] });
    expect(d.scheduler.maxSingleRequestTokens).toBe(16);
  });

  scenario(560)("admits every prompt that it allows, to the first decode", () => {
    for (const g of [1, 2, 4])
      for (const T of [4, 8, 9])
        for (const w of [1, 3])
          for (const depth of [0, 1])
            for (const disablePrefixCache of [true, false])
              for (let pool = 2; pool <= 8; pool++) {
                const setup = { P: 4, pool, T, w, depth, disablePrefixCache, groups: [M(g)] };
                const limit = new Scheduler(configOf(setup)).maxSingleRequestTokens;
                for (let prompt = 1; prompt <= Math.min(16, limit - w); prompt++) {
                  const d = new Driver(setup);
                  d.submit("a", tokens(prompt));
                  let plan = d.step();
                  for (let i = 0; i < 8 && plan.forward.rows[0]?.isPrefill; i++) plan = d.step();
                  expect(plan.forward.rows.map((row) => row.isFirstDecode)).toEqual([true]);
                }
              }
  });
});
