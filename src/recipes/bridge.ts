/**
 * Where declarations become the scheduler's configuration: the
 * only place that folds rows or checkpoints to a granularity.
 */
import type { CacheGroupConfig } from "../scheduler/config";
import type { CacheMemoryPlan } from "./bind";
import { blockGranularityOf, type CacheGroupSpec } from "./cache-spec";

/** Group configurations in declaration order. */
export function cacheGroupConfigs(
  specs: readonly CacheGroupSpec[],
  plan: CacheMemoryPlan,
): readonly CacheGroupConfig[] {
  const planned = new Map(plan.groups.map((group) => [group.groupId, group]));
  return specs.map((spec) => {
    const group = planned.get(spec.groupId) as CacheMemoryPlan["groups"][number];
    return {
      groupId: spec.groupId,
      blockGranularity: blockGranularityOf(spec),
      cacheBlocksPerLcmBlock: group.cacheBlocksPerLcmBlock,
      shardCount: spec.shardCount ?? 1,
      retention: spec.retention,
      ...(spec.slidingWindowTokens === undefined ? {} : { slidingWindowTokens: spec.slidingWindowTokens }),
      replayable: spec.replayable ?? false,
      family: spec.family,
      totalBlocks: group.pageCount,
    };
  });
}
