/**
 * The scheduler: requests in, execution plans out, events back in. One thread, no clock, no I/O, no randomness: equal
 * calls give equal plans on every rank.
 */
import type { RequestSpec, SchedulerConfig } from "./config";
import type { SchedulerEvent } from "./events";
import type { KvCacheEvent } from "./kv-cache-event";
import type { ExecutionPlan, RequestHandle } from "./plan";

/** Requests by state and LCM blocks by use. */
export interface SchedulerGauges {
  readonly waiting: number;
  readonly prefilling: number;
  readonly decoding: number;
  readonly bootstrapping: number;
  readonly remotePrefilling: number;
  readonly totalLcmBlocks: number;
  /** Empty ones plus those that only the cache holds. */
  readonly availableLcmBlocks: number;
  readonly emptyLcmBlocks: number;
  /** Those that a live request's table names. */
  readonly activeLcmBlocks: number;
  /** Device blocks the prefix index holds, all groups together. */
  readonly cachedBlocks: number;
  readonly hostCachedBlocks: number;
  readonly hostEmptyLcmBlocks: number;
  readonly hostPinnedBlocks: number;
  readonly retractions: number;
  readonly evictions: number;
}

/** Prompt tokens a request did not have to compute at its first admission, by where they were found. */
export interface HitTokens {
  readonly device: number;
  readonly host: number;
  readonly storage: number;
}

/** A walk over all books, a slice at a time; starts over when the scheduler moved in between. */
export interface IntegrityCheck {
  /** Looks at about `numBlocks` more blocks. True when the whole walk is done; a leak throws InvariantError. */
  step(numBlocks: number): boolean;
}

export declare class Scheduler {
  /** Throws a GranaryError that names the field when the configuration breaks a rule. */
  constructor(config: SchedulerConfig);

  readonly config: SchedulerConfig;
  /** Largest prompt + generation that one request may ask for. */
  readonly maxSingleRequestTokens: number;

  /** All or none are queued. Returns their handles in order. */
  submit(specs: readonly RequestSpec[]): readonly RequestHandle[];
  nextExecutionPlan(): ExecutionPlan;
  /** Applies events in order. */
  advance(events: readonly SchedulerEvent[]): void;

  /** True while work is left that a plan could carry or a result could end. */
  hasUnfinishedRequests(): boolean;
  handleOf(requestId: string): RequestHandle | undefined;
  isLive(request: RequestHandle): boolean;
  /** True when a Finish event is admitted now; otherwise the caller aborts. */
  canFinish(request: RequestHandle): boolean;
  /** Prompt and generated tokens, -1 for an unknown request. */
  tokenCountOf(request: RequestHandle): number;
  hitTokensOf(request: RequestHandle): HitTokens | undefined;

  gauges(): SchedulerGauges;
  cacheGroupTotalBlocks(groupId: string): number;
  cacheGroupAvailableBlocks(groupId: string): number;

  drainKvEvents(): readonly KvCacheEvent[];
  /** Drops the device's cached prefixes. False, with nothing changed, while something still uses them. */
  clearL1Cache(): boolean;
  /** Drops device and Host. */
  clearCache(): boolean;
  canClearCache(): boolean;

  /** 64-digit hex hashes of the prompt's matchable prefix pages. */
  prefixHashesForTokens(tokens: Int32Array, namespaceRoot?: Uint8Array): readonly string[];
  /** Hashes of the work that could be admitted now, for a look into storage before planning. */
  waitingPrefixHashes(): readonly string[];
  expandPrefixKeys(hashes: readonly string[]): StorageKeys;
  registerStorageKeys(keys: StorageKeys): void;
  unregisterStorageKeys(keys: StorageKeys): void;

  startIntegrityCheck(): IntegrityCheck;
}

/** Keys of blocks in storage; three lists of equal length. */
export interface StorageKeys {
  readonly groups: readonly number[];
  readonly hashes: readonly string[];
  readonly pageOffsets: readonly number[];
}
