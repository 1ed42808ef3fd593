/**
 * The one gate of configurations: every rule with the
 * message it gives. Nothing is built before it has passed.
 */
import { demand } from "../assert";
import { maxBatchRows, maxInt32 } from "../limits";
import type {
  CacheGroupConfig,
  CacheGroupFamily,
  CacheGroupRetention,
  CacheGroupTransferPolicy,
  SchedulerConfig,
  SchedulerRole,
} from "./config";
import { isCount } from "./count";

const code = "invalidArgument";

/** The words that may stand in a configuration; whatever reads it takes any other for the default. */
const roles: readonly SchedulerRole[] = ["fused", "prefill", "decode"];
const families: readonly CacheGroupFamily[] = ["history", "state"];
const retentions: readonly CacheGroupRetention[] = ["fullHistory", "slidingWindow"];
const transferPolicies: readonly CacheGroupTransferPolicy[] = ["unspecified", "fullSuffix", "latestSnapshot"];

/** The rules that size a request; they need no page counts, so that a pool can be sized before it exists. */
export function validateCapacityInputs(config: SchedulerConfig): void {
  const { prefixGranularity: p, maxScheduledTokens } = config;
  const decodeInputTokens = config.decodeInputTokens ?? 1;
  const depth = config.overlapScheduleDepth ?? 0;
  check(isCount(p) && p > 0, "prefixGranularity must be positive");
  check(config.cacheGroups.length > 0, "at least one cache group is needed");
  check(isCount(config.maxBatchSize), "maxBatchSize must not be negative");
  check(config.maxBatchSize <= maxBatchRows, `maxBatchSize must be at most ${maxBatchRows}`);
  check(isOneOf(config.role, roles), mustBeOneOf("role", roles));
  check(isCount(decodeInputTokens), "decodeInputTokens must not be negative");
  check(isCount(maxScheduledTokens) && maxScheduledTokens > 0, "maxScheduledTokens must be positive");
  const decodesHere = (config.role ?? "fused") === "fused";
  check(
    !decodesHere || maxScheduledTokens >= decodeInputTokens,
    "maxScheduledTokens must be at least decodeInputTokens, or nothing is ever decoded",
  );
  check(depth === 0 || depth === 1, "overlapScheduleDepth must be 0 or 1");
  check(depth === 0 || decodeInputTokens > 0, "overlapScheduleDepth 1 needs decodeInputTokens above 0");
  const names = new Set<string>();
  for (const group of config.cacheGroups) {
    validateGroup(group, config);
    check(!names.has(group.groupId), `cache group '${group.groupId}' is declared twice`);
    names.add(group.groupId);
  }
  validateReplay(config);
}

/** All rules. */
export function validateConfig(config: SchedulerConfig): void {
  validateCapacityInputs(config);
  const { numDeviceLcmBlocks, numHostLcmBlocks = 0 } = config;
  check(
    isCount(numDeviceLcmBlocks) && numDeviceLcmBlocks > 0,
    "device cache must contain a null block and usable capacity",
  );
  check(isCount(numHostLcmBlocks), "numHostLcmBlocks must not be negative");
  for (const group of config.cacheGroups) {
    const packing = group.cacheBlocksPerLcmBlock ?? 1;
    const blocks = Math.max(numDeviceLcmBlocks, numHostLcmBlocks) * packing;
    checkGroup(blocks < maxInt32, group, "block ids do not fit int32");
    checkGroup(
      group.totalBlocks === undefined || group.totalBlocks >= 1,
      group,
      "totalBlocks must be positive",
    );
  }
  check(isCount(config.prefixReplayTokens ?? 0), "prefixReplayTokens must not be negative");
  const hasHost = numHostLcmBlocks > 0 && config.disableL2Cache !== true;
  check(config.enableL3Storage !== true || hasHost, "enableL3Storage needs a Host cache");
}

function validateGroup(group: CacheGroupConfig, config: SchedulerConfig): void {
  const p = config.prefixGranularity;
  const role = config.role ?? "fused";
  const packing = group.cacheBlocksPerLcmBlock ?? 1;
  const shards = group.shardCount ?? 1;
  demand(group.groupId !== "", code, "Cache group: groupId must not be empty");
  validateWords(group);
  checkGroup(
    isCount(group.blockGranularity) && group.blockGranularity > 0,
    group,
    "blockGranularity must be positive",
  );
  checkGroup(isCount(packing) && packing > 0, group, "cacheBlocksPerLcmBlock must be positive");
  checkGroup(isCount(shards) && shards > 0, group, "shardCount must be positive");
  checkGroup(packing % shards === 0, group, "shardCount must divide cacheBlocksPerLcmBlock");
  const isSliding = group.retention === "slidingWindow";
  const window = group.slidingWindowTokens ?? 0;
  checkGroup(!isSliding || (isCount(window) && window > 0), group, "slidingWindowTokens must be positive");
  const isState = group.family === "state";
  checkGroup(!(isState && isSliding), group, "a state group cannot have a sliding window");
  const isSlidingHistory = isSliding && !isState;
  checkGroup(
    group.replayable !== true || isSlidingHistory,
    group,
    "only a sliding History group can be replayable",
  );
  checkGroup(p % group.blockGranularity === 0, group, `blockGranularity must divide prefixGranularity ${p}`);
  if (role !== "fused") {
    const policy = isState ? "latestSnapshot" : "fullSuffix";
    checkGroup(
      group.transferPolicy === policy,
      group,
      `transferPolicy must be "${policy}" on the ${role} role`,
    );
  }
  const fitsState = !isState || config.maxScheduledTokens >= p;
  checkGroup(fitsState, group, "maxScheduledTokens must be at least prefixGranularity with a state group");
}

function validateWords(group: CacheGroupConfig): void {
  checkGroup(isOneOf(group.family, families), group, mustBeOneOf("family", families));
  checkGroup(isOneOf(group.retention, retentions), group, mustBeOneOf("retention", retentions));
  const isPolicy = isOneOf(group.transferPolicy, transferPolicies);
  checkGroup(isPolicy, group, mustBeOneOf("transferPolicy", transferPolicies));
}

function validateReplay(config: SchedulerConfig): void {
  const replayed = config.cacheGroups.filter((group) => group.replayable === true);
  if (replayed.length === 0) return;
  const window = Math.max(...replayed.map((group) => group.slidingWindowTokens ?? 0));
  check(
    config.maxScheduledTokens >= window + Math.max(window, config.prefixGranularity),
    "maxScheduledTokens must hold the replay window and one chunk behind it",
  );
  const hasState = config.cacheGroups.some((group) => group.family === "state");
  check(!hasState, "a state group cannot stand beside a replayable group");
}

function isOneOf(word: string | undefined, words: readonly string[]): boolean {
  return word === undefined || words.includes(word);
}

function mustBeOneOf(field: string, words: readonly string[]): string {
  return `${field} must be ${words.map((word) => `"${word}"`).join(" or ")}`;
}

function check(condition: boolean, message: string): void {
  demand(condition, code, `Scheduler: ${message}`);
}

function checkGroup(condition: boolean, group: CacheGroupConfig, message: string): void {
  demand(condition, code, `Cache group '${group.groupId}': ${message}`);
}
