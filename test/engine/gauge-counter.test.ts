/** Running totals, and when they are sent along. */
import { describe, expect, test } from "bun:test";
import { GaugeCounter } from "../../src/engine/gauge-counter";
import type { StepOutput } from "../../src/engine/step-output";
import { gaugeIntervalMs } from "../../src/limits";
import { planOf, prefillRow } from "../support/hand-made-plan";

const schedulerGauges = {
  waiting: 1,
  prefilling: 2,
  decoding: 3,
  bootstrapping: 0,
  remotePrefilling: 0,
  totalLcmBlocks: 40,
  availableLcmBlocks: 30,
  emptyLcmBlocks: 20,
  activeLcmBlocks: 10,
  cachedBlocks: 15,
  hostCachedBlocks: 0,
  hostEmptyLcmBlocks: 0,
  hostPinnedBlocks: 0,
  retractions: 4,
  evictions: 5,
  stalledRounds: 0,
};

function newCounter() {
  const clock = { nowMs: 1000 };
  return { clock, counter: new GaugeCounter({ gauges: () => schedulerGauges }, () => clock.nowMs) };
}

const busyPlan = planOf([{ row: prefillRow({ slot: 1, tokens: Int32Array.of(1) }), changes: [] }]);
const output = { promptTokens: 7, cachedTokens: 4, generationTokens: 2, nanAborts: 1 } as StepOutput;

describe("gauges", () => {
  test("are sent at once, then not before their interval has passed", () => {
    const { clock, counter } = newCounter();
    expect(counter.due(false)).toBeDefined();
    clock.nowMs += gaugeIntervalMs - 1;
    expect(counter.due(false)).toBeUndefined();
    clock.nowMs += 1;
    expect(counter.due(false)).toBeDefined();
    expect(counter.due(false)).toBeUndefined();
  });

  test("are always sent before idling", () => {
    const { counter } = newCounter();
    counter.due(false);
    expect(counter.due(true)).toBeDefined();
  });

  test("add up what steps yielded and count those that did something", () => {
    const { counter } = newCounter();
    for (const plan of [busyPlan, planOf([]), busyPlan]) counter.countStep(plan);
    counter.countTokens(output);
    counter.countTokens(output);
    expect(counter.due(true)).toMatchObject({
      steps: 2,
      promptTokens: 14,
      cachedTokens: 8,
      generationTokens: 4,
      nanAborts: 2,
    });
  });

  test("carry the scheduler's own numbers", () => {
    const own = {
      waiting: 1,
      prefilling: 2,
      decoding: 3,
      totalLcmBlocks: 40,
      availableLcmBlocks: 30,
      emptyLcmBlocks: 20,
      activeLcmBlocks: 10,
      cachedBlocks: 15,
      retractions: 4,
      evictions: 5,
    };
    expect(newCounter().counter.due(true)).toMatchObject(own);
  });
});
