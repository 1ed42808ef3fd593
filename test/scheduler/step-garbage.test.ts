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

describe("a decode round", () => {
  test("leaves less than one object in ten rounds of 32 rows behind, pages published included", () => {
    const scheduler = decodingScheduler();
    rounds(scheduler, 4000);
    Bun.gc(true);
    const before = heapStats().objectTypeCounts;
    rounds(scheduler, 2000);
    const after = heapStats().objectTypeCounts;
    const made = Object.keys(after).map((type) => [type, after[type] - (before[type] ?? 0)] as const);
    expect(made.filter(([, count]) => count > 200)).toEqual([]);
  });
});
