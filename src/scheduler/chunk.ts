/** How many tokens of a prompt one step takes: pure arithmetic on positions, budgets and boundaries. */
import type { SchedulerSettings } from "./settings";

/**
 * Cuts a chunk at a pending promotion boundary and else at a multiple of the
 * prefix granularity, so that the next one starts at an identity boundary. A
 * chunk that completes its prompt is never cut. 0 = wait for a larger budget.
 */
export function alignChunk(
  firstPosition: number,
  unscheduled: number,
  budget: number,
  prefixGranularity: number,
  promotionBoundary: number,
): number {
  let chunk = Math.min(unscheduled, budget);
  if (promotionBoundary > firstPosition) chunk = Math.min(chunk, promotionBoundary - firstPosition);
  if (chunk === unscheduled) return chunk;
  const beyond = firstPosition % prefixGranularity;
  if (beyond !== 0) {
    const needed = prefixGranularity - beyond;
    return budget >= needed ? needed : 0;
  }
  return chunk - (chunk % prefixGranularity);
}

/**
 * Shortens a chunk so that the last one is not smaller than
 * the window which replayable groups must regenerate.
 */
export function keepWindow(chunk: number, unscheduled: number, replayWindowTokens: number): number {
  const remaining = unscheduled - chunk;
  if (replayWindowTokens === 0 || remaining === 0 || remaining >= replayWindowTokens) return chunk;
  return Math.max(0, unscheduled - replayWindowTokens);
}

/** Cached tokens to re-feed in front of a local hit. */
export function replayTokens(hitTokens: number, replayWindowTokens: number): number {
  return Math.min(hitTokens, replayWindowTokens);
}

/** Tokens of the next chunk; 0 when none can be taken now. */
export function prefillChunk(
  settings: SchedulerSettings,
  firstPosition: number,
  isFirstChunk: boolean,
  unscheduled: number,
  budget: number,
  promotionBoundary: number,
): number {
  const window = settings.replayWindowTokens;
  const room = budget - (isFirstChunk ? replayTokens(firstPosition, window) : 0);
  if (room <= 0) return 0;
  const plain = Math.min(room, unscheduled);
  const chunk =
    settings.hasStateGroup || promotionBoundary > 0
      ? alignChunk(firstPosition, unscheduled, room, settings.prefixGranularity, promotionBoundary)
      : plain;
  if (chunk === 0) return 0;
  const kept = keepWindow(chunk, unscheduled, window);
  return kept > 0 || chunk === plain ? kept : keepWindow(plain, unscheduled, window);
}

/** Budget that a mixed step keeps back so that a prompt's chunk is never aligned to nothing. */
export function minPrefillChunkTokens(settings: SchedulerSettings): number {
  const { prefixGranularity, replayWindowTokens: window, hasStateGroup } = settings;
  return Math.max(
    hasStateGroup ? prefixGranularity : 0,
    window > 0 ? window + Math.max(window, prefixGranularity) : 0,
  );
}
