/** Draws a world from its seed: groups, spans, pools from starved to ample, limits, tiers and modes. */
import { CapacityModel } from "../../src/scheduler/capacity-model";
import type { SchedulerConfig } from "../../src/scheduler/config";
import { configOf, F, M, R, type Setup, W } from "../scheduler/driver";
import type { Random } from "./random";

export interface WorldSetup {
  readonly config: SchedulerConfig;
  readonly maxPrompt: number;
  readonly maxNew: number;
  /** How often, of a hundred steps, a fault strikes. */
  readonly faultRate: number;
}

/** A world that can carry at least one request of its largest size. */
export function drawWorld(random: Random): WorldSetup {
  for (;;) {
    const world = tryDraw(random);
    if (world !== undefined) return world;
  }
}

function tryDraw(random: Random): WorldSetup | undefined {
  const P = random.pick([1, 2, 4, 4, 8]);
  const spans = [1, 2, 4, 8].filter((span) => P % span === 0);
  const groups = drawGroups(random, spans);
  const hasReplay = groups.some((group) => group.replayable === true);
  const T = random.pick([P, 2 * P, 12, 24, 64]) + (hasReplay ? 64 : 0);
  const host = random.pick([0, 0, 6, 16, 40]);
  const setup: Setup = {
    P,
    T: Math.max(T, P, 3),
    groups,
    pool: 1,
    host,
    B: random.pick([1, 2, 4, 8]),
    w: random.pick([1, 1, 1, 2, 3]),
    depth: random.int(0, 1),
    enableMixedPrefillDecode: random.chance(0.4),
    disablePrefixCache: random.chance(0.1),
    enableL3Storage: host > 0 && random.chance(0.3),
    prefixReplayTokens: random.chance(0.1) ? random.int(1, 2 * P) : 0,
    enableKvCacheEvents: random.chance(0.3),
  };
  const maxPrompt = random.pick([3, 10, 24, 40]);
  const maxNew = random.pick([1, 4, 12]);
  const capacity = new CapacityModel(configOf(setup));
  const limit = maxPrompt + maxNew + (setup.w ?? 1);
  const least = capacity.lcmBlocksNeededFor(capacity.singleRequestBlocks(limit));
  const pool = Math.max(1, Math.ceil(least * random.pick([1, 1, 1.2, 2, 4])));
  if (pool > 200) return undefined;
  return {
    config: configOf({ ...setup, pool }),
    maxPrompt,
    maxNew,
    faultRate: random.pick([0, 1, 5, 15]),
  };
}

function drawGroups(random: Random, spans: readonly number[]): Setup["groups"] {
  const count = random.pick([1, 1, 2, 2, 3, 4, 7]);
  const wantsState = random.chance(0.5);
  return Array.from({ length: count }, (_, i) => {
    const span = random.pick(spans);
    const K = random.pick([1, 1, 2, 3, 8]);
    const kind = random.int(0, 3);
    if (kind === 1) return W(random.pick([1, 3, 4, 9, 16]), span, K);
    if (kind === 2 && wantsState) return M(span, K);
    if (kind === 3 && !wantsState && i > 0) return R(random.pick([2, 4, 9]), span, K);
    const shards = K % 2 === 0 && random.chance(0.3) ? 2 : 1;
    return { ...F(span, K), shardCount: shards };
  });
}
