/**
 * A validated configuration with every default filled in and the quantities that all rules use worked out.
 */
import type { CacheGroupSpec } from "../cache/cache-group-spec";
import type { CacheGroupConfig, SchedulerConfig, SchedulerRole } from "./config";
import { validateConfig } from "./validate-config";

export interface SchedulerSettings {
  readonly prefixGranularity: number;
  readonly numDeviceLcmBlocks: number;
  readonly numHostLcmBlocks: number;
  readonly groups: readonly CacheGroupConfig[];
  readonly specs: readonly CacheGroupSpec[];
  readonly maxScheduledTokens: number;
  readonly maxBatchSize: number;
  readonly decodeInputTokens: number;
  readonly overlapScheduleDepth: number;
  readonly enableL3Storage: boolean;
  readonly enableKvCacheEvents: boolean;
  readonly mixesPrefillAndDecode: boolean;
  readonly role: SchedulerRole;
  readonly disablePrefixCache: boolean;
  readonly prefixReplayTokens: number;
  readonly hasHostCache: boolean;
  /** Newly cached blocks go to Host as they are published. */
  readonly streamsDeviceToHost: boolean;
  readonly hasStateGroup: boolean;
  /** Tokens re-fed in front of a hit; 0 without replayable groups. */
  readonly replayWindowTokens: number;
}

/** Throws a GranaryError for the first rule that the configuration breaks. */
export function resolveSettings(config: SchedulerConfig): SchedulerSettings {
  validateConfig(config);
  const specs = config.cacheGroups.map(specOf);
  const role = config.role ?? "fused";
  const numHostLcmBlocks = config.disableL2Cache === true ? 0 : (config.numHostLcmBlocks ?? 0);
  const hasHostCache = numHostLcmBlocks > 0;
  return {
    prefixGranularity: config.prefixGranularity,
    numDeviceLcmBlocks: config.numDeviceLcmBlocks,
    numHostLcmBlocks,
    groups: config.cacheGroups,
    specs,
    maxScheduledTokens: config.maxScheduledTokens,
    maxBatchSize: config.maxBatchSize,
    decodeInputTokens: config.decodeInputTokens ?? 1,
    overlapScheduleDepth: config.overlapScheduleDepth ?? 0,
    enableL3Storage: config.enableL3Storage ?? false,
    enableKvCacheEvents: config.enableKvCacheEvents ?? false,
    mixesPrefillAndDecode: role === "fused" && config.enableMixedPrefillDecode === true,
    role,
    disablePrefixCache: config.disablePrefixCache ?? false,
    prefixReplayTokens: config.prefixReplayTokens ?? 0,
    hasHostCache,
    streamsDeviceToHost: hasHostCache && role !== "decode",
    hasStateGroup: specs.some((spec) => spec.kind === "state"),
    replayWindowTokens: Math.max(0, ...specs.map((spec) => (spec.replayable ? spec.windowTokens : 0))),
  };
}

/** Pure translation; the configuration was judged before. */
export function specOf(group: CacheGroupConfig, position: number): CacheGroupSpec {
  const isSliding = group.retention === "slidingWindow";
  return {
    group: position,
    kind: group.family === "state" ? "state" : isSliding ? "slidingWindow" : "full",
    blockGranularity: group.blockGranularity,
    windowTokens: isSliding ? (group.slidingWindowTokens ?? 0) : 0,
    cacheBlocksPerLcmBlock: group.cacheBlocksPerLcmBlock ?? 1,
    shardCount: group.shardCount ?? 1,
    replayable: group.replayable ?? false,
  };
}
