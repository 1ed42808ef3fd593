/** W4, W5 and the memory of a full pool: what must not grow with the pool or with the context. */
import { middle, nowUs, summarize } from "./measure";
import { benchConfig, Rig, streamRequest } from "./rig";
import { streamTokens } from "./tokens";

export interface ScaleRun {
  readonly hitAdmissionUs: number;
  readonly evictingAdmissionUs: number;
  readonly firstDecodeRoundUs: number;
  readonly decodeRoundMeanUs: number;
  readonly residentBytes: number;
  readonly cachedBlocks: number;
}

const longBatch = { maxScheduledTokens: 131_072 };

/** Fills the pool with cached blocks of finished requests, all but one block at most. */
export function fillPool(rig: Rig, numBlocks: number): void {
  const large = numBlocks <= 1000 ? 4096 : 65_536;
  let left = numBlocks;
  for (let k = 0; left > 1; k++) {
    const blocks = Math.min(large / 64, left - 1);
    rig.submit([streamRequest(`fill${k}`, streamTokens(100_000 + k, blocks * 64 + 1), 1)]);
    rig.drain();
    left -= blocks;
    if (blocks < large / 64) break;
  }
  rig.scheduler.nextExecutionPlan();
}

export function runScale(numBlocks: number, repetitions: number, timerUs: number): ScaleRun {
  const rig = new Rig(benchConfig(numBlocks, longBatch), timerUs);
  fillPool(rig, numBlocks);
  const { cachedBlocks } = rig.scheduler.gauges();
  const residentBytes = process.memoryUsage.rss();
  const seed = streamTokens(7777, 1025);
  rig.submit([streamRequest("seed", seed, 1)]);
  rig.drain();
  rig.scheduler.nextExecutionPlan();
  const hits: number[] = [];
  const misses: number[] = [];
  for (let i = 0; i < repetitions + 2; i++) {
    const request = streamRequest(`hit${i}`, seed.slice(), 1);
    const start = nowUs();
    const [handle] = rig.scheduler.submit([request.spec]);
    const plan = rig.scheduler.nextExecutionPlan();
    const us = nowUs() - start - timerUs;
    if (plan.forward.rows[0].deviceHitTokens !== 1024) throw new Error("the admission did not hit");
    rig.abort(handle);
    if (i >= 2) hits.push(us);
  }
  for (let i = 0; i < repetitions + 2; i++) {
    const request = streamRequest(`miss${i}`, streamTokens(500_000 + i, 1025), 1);
    const submitUs = rig.submit([request]);
    const round = rig.round();
    rig.scheduler.nextExecutionPlan();
    if (i >= 2) misses.push(submitUs + round.planUs);
  }
  const decode = decodeRounds(rig, 32, (i) => streamTokens(900_000 + i, 513 + 2 * i), 70, 65);
  return {
    hitAdmissionUs: middle(hits),
    evictingAdmissionUs: middle(misses),
    firstDecodeRoundUs: decode[0],
    decodeRoundMeanUs: summarize(decode.slice(1)).mean,
    residentBytes,
    cachedBlocks,
  };
}

/** The pure decode rounds of requests that were submitted together, the first included. */
function decodeRounds(
  rig: Rig,
  count: number,
  promptOf: (i: number) => Int32Array,
  produce: number,
  numRounds: number,
): number[] {
  rig.submit(Array.from({ length: count }, (_, i) => streamRequest(`decode${i}`, promptOf(i), produce)));
  const samples: number[] = [];
  rig.drain((round) => {
    if (round.numPrefills === 0 && round.numDecodes === count && samples.length < numRounds)
      samples.push(round.us);
  });
  return samples;
}

/** Median decode round of 32 requests at one context length. */
export function runLongContext(contextTokens: number, timerUs: number): number {
  const rig = new Rig(benchConfig(40_000, longBatch), timerUs);
  const prompts = Array.from({ length: 32 }, (_, i) => streamTokens(2_000_000 + i, contextTokens + 1));
  const rounds = decodeRounds(rig, 32, (i) => prompts[i], 60, 58);
  return middle(rounds.slice(1));
}

export interface QueueRun {
  readonly firstUs: number;
  readonly medianUs: number;
  readonly maxUs: number;
}

/** W6: rounds of 32 decoders while many wait for a pool that has nothing left. */
export function runDeepQueue(numWaiting: number, timerUs: number): QueueRun {
  const rig = new Rig(benchConfig(4576), timerUs);
  rig.submit(
    Array.from({ length: 32 }, (_, i) => streamRequest(`d${i}`, streamTokens(900_000 + i, 5001), 4096, 4096)),
  );
  while (rig.round().numDecodes < 32);
  rig.submit(
    Array.from({ length: numWaiting }, (_, k) =>
      streamRequest(`w${k}`, streamTokens(700_000 + k, 1025), 64, 64),
    ),
  );
  const samples = Array.from({ length: 501 }, () => rig.round().us);
  const { median, max } = summarize(samples.slice(1));
  return { firstUs: samples[0], medianUs: median, maxUs: max };
}

/** Bytes of process memory a cached block at a full pool, all groups counted as blocks. */
export function runMemory(
  numBlocks: number,
  numGroups: 1 | 3,
): { bytesPerBlock: number; cachedBlocks: number } {
  const full = { groupId: "full", blockGranularity: 64 };
  const window = {
    groupId: "swa",
    blockGranularity: 64,
    retention: "slidingWindow",
    slidingWindowTokens: 65_536,
  };
  const state = { groupId: "state", blockGranularity: 64, family: "state" };
  const cacheGroups = numGroups === 1 ? [full] : [full, window, state];
  const config = benchConfig(numBlocks, { ...longBatch, cacheGroups: cacheGroups as never });
  const rig = new Rig(config, 0);
  for (let k = 0; rig.scheduler.gauges().emptyLcmBlocks > 4 * 1024; k++) {
    rig.submit([streamRequest(`fill${k}`, streamTokens(100_000 + k, 65_537), 1)]);
    rig.drain();
  }
  Bun.gc(true);
  const { cachedBlocks } = rig.scheduler.gauges();
  return { bytesPerBlock: process.memoryUsage.rss() / cachedBlocks, cachedBlocks };
}
