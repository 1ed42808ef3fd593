/** What a round leaves for the collector: nothing, or its pauses would be the longest steps of a server. */
import { heapStats } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import { Scheduler } from "../../src/scheduler/scheduler";

const batch = 32;
const tokenCounts = new Int32Array(batch).fill(1);
const tokens = new Int32Array(batch).fill(7);

/** A scheduler of `batch` requests that decode, with pages of 64 tokens. */
function decodingScheduler(): Scheduler {
  const scheduler = new Scheduler({
    prefixGranularity: 64,
    numDeviceLcmBlocks: 8192,
    cacheGroups: [{ groupId: "full", blockGranularity: 64 }],
    maxScheduledTokens: 8192,
    maxBatchSize: batch,
  });
  scheduler.submit(
    Array.from({ length: batch }, (_, i) => ({
      requestId: `request ${i}`,
      tokens: Int32Array.from({ length: 100 }, (_, position) => i * 1000 + position),
      maxNewTokens: 8000,
    })),
  );
  return scheduler;
}

function rounds(scheduler: Scheduler, count: number): void {
  const result = { kind: "forwardResult" as const, planId: 0, tokenCounts, tokens };
  const events = [result];
  for (let i = 0; i < count; i++) {
    result.planId = scheduler.nextExecutionPlan().planId;
    scheduler.advance(events);
  }
}

/** Objects made by `run`, by type, those of few left out. */
function madeBy(run: () => void, few: number): readonly (readonly [string, number])[] {
  Bun.gc(true);
  const before = heapStats().objectTypeCounts;
  run();
  const after = heapStats().objectTypeCounts;
  const made = Object.keys(after).map((type) => [type, after[type] - (before[type] ?? 0)] as const);
  return made.filter(([, count]) => count > few);
}

describe("a decode round", () => {
  test("leaves less than an object of a kind behind in five rounds, published pages included", () => {
    const scheduler = decodingScheduler();
    rounds(scheduler, 4000);
    expect(madeBy(() => rounds(scheduler, 3800), 760)).toEqual([]);
  });
});

describe("a request that comes and goes", () => {
  test("leaves behind what its submission returns and no record of itself", () => {
    const scheduler = decodingScheduler();
    rounds(scheduler, 100);
    for (let i = 0; i < batch; i++) scheduler.advance([{ kind: "finish", request: i + 1 }]);
    const specs = [{ requestId: "guest", tokens: Int32Array.from({ length: 130 }, (_, i) => i) }];
    const finish = { kind: "finish" as const, request: 0 };
    const events = [finish];
    const visits = (count: number) => {
      for (let i = 0; i < count; i++) {
        scheduler.nextExecutionPlan();
        finish.request = scheduler.submit(specs)[0] as number;
        rounds(scheduler, 3);
        scheduler.advance(events);
      }
    };
    visits(3000);
    const numVisits = 1000;
    const made = madeBy(() => visits(numVisits), numVisits / 4);
    const perVisit = made.reduce((sum, [, count]) => sum + count, 0) / numVisits;
    expect(perVisit).toBeLessThan(5);
  });
});
