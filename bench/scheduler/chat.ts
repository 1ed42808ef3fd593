/** W1, W2 and W3: conversations of eight turns over one, a small, or three shared pools. */
import type { SchedulerConfig } from "../../src/scheduler/config";
import { Samples } from "./measure";
import { type BenchRequest, benchConfig, fullGroup, Rig } from "./rig";
import { activeSetOrder, conversationToken, conversationTokens, token } from "./tokens";

export interface ChatRun {
  /** Pure decode rounds of the whole batch in which nobody finishes. */
  readonly decodeUs: Float64Array;
  /** Rounds that prefill, by row. */
  readonly prefillRowUs: Float64Array;
  /** Rounds that admit, whole. */
  readonly admissionUs: Float64Array;
  readonly totalUs: number;
  readonly hitTokens: number;
  readonly hitTokensByTurn: number[];
  readonly evictions: number;
  readonly cachedBlocks: number;
  readonly hostCachedBlocks: number;
}

export type Turn = readonly [conversation: number, turn: number];

const promptLength = (turn: number) => 1280 + 320 * turn;

const chatRequests: (BenchRequest | undefined)[] = [];

/** A turn's request; made once, for its id is free again when the turn is over. */
export function chatRequest([conversation, turn]: Turn): BenchRequest {
  const index = conversation * 8 + turn;
  const tokens = conversationTokens(conversation, promptLength(turn));
  chatRequests[index] ??= {
    spec: { requestId: `c${String(conversation).padStart(5, "0")}.t${turn}`, tokens, maxNewTokens: 64 },
    produce: 64,
    tokenAt: (position) => conversationToken(conversation, position),
  };
  return chatRequests[index];
}

/** Turn-major: all conversations' first turns in batches of `batch`, then all second turns, and so on. */
export function turnMajor(batch: number): Turn[][] {
  return Array.from({ length: 8 }, (_, turn) =>
    Array.from({ length: 256 / batch }, (_, k) =>
      Array.from({ length: batch }, (_, i): Turn => [k * batch + i, turn]),
    ),
  ).flat();
}

export function activeSet(): Turn[][] {
  return activeSetOrder().map((turn) => [turn]);
}

/** Puts the system prompt into the cache, as every workload begins. */
export function warmUp(rig: Rig): void {
  const tokens = Int32Array.from({ length: 1025 }, (_, p) => token(p < 1024 ? 0 : 0xffff, p));
  rig.submit([
    {
      spec: { requestId: "warm-up", tokens },
      produce: 1,
      tokenAt: (position) => token(0xffff, position),
    },
  ]);
  rig.drain();
  rig.round();
}

export function runChat(
  config: SchedulerConfig,
  batches: readonly (readonly Turn[])[],
  timerUs: number,
): ChatRun {
  const rig = new Rig(config, timerUs);
  warmUp(rig);
  rig.totalUs = 0;
  rig.hitTokens = 0;
  const decodeUs = new Samples();
  const prefillRowUs = new Samples();
  const admissionUs = new Samples();
  const hitTokensByTurn = new Array<number>(8).fill(0);
  for (const batch of batches) {
    rig.submit(batch.map(chatRequest));
    const before = rig.hitTokens;
    rig.drain((round) => {
      if (round.numPrefills > 0) {
        prefillRowUs.push(round.us / round.numPrefills);
        admissionUs.push(round.us);
      } else if (round.numDecodes === batch.length && round.numFinished === 0) decodeUs.push(round.us);
    });
    hitTokensByTurn[batch[0][1]] += rig.hitTokens - before;
  }
  const { evictions, cachedBlocks, hostCachedBlocks } = rig.scheduler.gauges();
  return {
    decodeUs: decodeUs.values,
    prefillRowUs: prefillRowUs.values,
    admissionUs: admissionUs.values,
    totalUs: rig.totalUs,
    hitTokens: rig.hitTokens,
    hitTokensByTurn,
    evictions,
    cachedBlocks,
    hostCachedBlocks,
  };
}

export const w1Config = () => benchConfig(12_288);
/** The same with a Host tier that holds all of it. */
export const w1HostConfig = () => benchConfig(12_288, { numHostLcmBlocks: 20_000 });
export const w2Config = () => benchConfig(2_564);
export const w3Config = () =>
  benchConfig(24_576, {
    cacheGroups: [
      fullGroup,
      { groupId: "swa", blockGranularity: 64, retention: "slidingWindow", slidingWindowTokens: 1024 },
      { groupId: "state", blockGranularity: 64, family: "state" },
    ],
  });
