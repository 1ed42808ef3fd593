/**
 * How many blocks requests need at worst, from the configuration alone: bounds single requests against a pool
 * and sizes a pool for a concurrency. The per-request working set is defined here and nowhere else.
 */
import { demand } from "../assert";
import type { CacheGroupSpec } from "../cache/cache-group-spec";
import { maxInt32 } from "../limits";
import type { SchedulerConfig } from "./config";
import { specOf } from "./settings";
import { validateCapacityInputs } from "./validate-config";

export class CapacityModel {
  readonly #prefixGranularity: number;
  readonly #maxScheduledTokens: number;
  readonly #maxBatchSize: number;
  readonly #role: "fused" | "prefill" | "decode";
  readonly #disablePrefixCache: boolean;
  readonly #specs: readonly CacheGroupSpec[];
  /** Tokens of a decode row. */
  readonly #width: number;
  /** Tokens behind a forward that is still out: their blocks cannot be reclaimed. */
  readonly #protected: number;

  constructor(config: SchedulerConfig) {
    validateCapacityInputs(config);
    this.#prefixGranularity = config.prefixGranularity;
    this.#maxScheduledTokens = config.maxScheduledTokens;
    this.#maxBatchSize = config.maxBatchSize;
    this.#role = config.role ?? "fused";
    this.#disablePrefixCache = config.disablePrefixCache ?? false;
    this.#specs = config.cacheGroups.map(specOf);
    this.#width = config.decodeInputTokens ?? 1;
    this.#protected = this.#role === "prefill" ? 0 : (config.overlapScheduleDepth ?? 0) * this.#width;
  }

  /** Blocks of each group that one request of `limit` tokens, generation included, holds at its peak. */
  singleRequestBlocks(limit: number): number[] {
    demand(limit >= 0, "invalidArgument", "Scheduler: a token limit must not be negative");
    return this.#specs.map((spec) => this.#singleBlocks(spec, limit));
  }

  /**
   * Blocks of each group for maxBatchSize requests of
   * `totalTokens` together, each of `contextTokens` at most.
   */
  concurrentBlocks(totalTokens: number, contextTokens: number, numRequests = this.#maxBatchSize): number[] {
    demand(
      totalTokens >= 0 && contextTokens >= 0 && numRequests >= 0,
      "invalidArgument",
      "Scheduler: token counts must not be negative",
    );
    return this.#specs.map((spec) => this.#concurrentBlocks(spec, totalTokens, contextTokens, numRequests));
  }

  /** LCM blocks that hold these many blocks of each group. */
  lcmBlocksNeededFor(blocks: readonly number[]): number {
    return this.#specs.reduce((sum, spec, g) => sum + Math.ceil(blocks[g] / spec.cacheBlocksPerLcmBlock), 0);
  }

  /** The largest request that a pool of this size can carry to its end. */
  maxSingleRequestTokens(numLcmBlocks: number): number {
    let fits = 0;
    let tooLarge = maxInt32 + 1;
    while (tooLarge - fits > 1) {
      const middle = Math.floor((fits + tooLarge) / 2);
      if (this.lcmBlocksNeededFor(this.singleRequestBlocks(middle)) <= numLcmBlocks) fits = middle;
      else tooLarge = middle;
    }
    return fits;
  }

  #singleBlocks(spec: CacheGroupSpec, limit: number): number {
    const g = spec.blockGranularity;
    if (spec.kind === "full") return Math.ceil((limit + this.#protected) / g);
    if (this.#role === "decode") {
      if (spec.kind === "state") return Math.max(limit === 0 ? 0 : 2, this.#stateLocalPeak(spec, limit));
      const beyond = spec.windowTokens - 1 + this.#width + this.#protected + g - 1;
      return Math.min(Math.ceil((limit + this.#protected) / g), lookback(spec) + Math.ceil(beyond / g));
    }
    return spec.kind === "state" ? this.#stateLocalPeak(spec, limit) : this.#slidingLocalPeak(spec, limit);
  }

  /** Input, aligned and continuation snapshots together with the room that decoding grows into. */
  #stateLocalPeak(spec: CacheGroupSpec, limit: number): number {
    if (limit === 0) return 0;
    const g = spec.blockGranularity;
    const p = this.#prefixGranularity;
    const maxPrompt = Math.max(limit - this.#width, 0);
    const reserve = this.#role === "prefill" ? 0 : Math.max(g, this.#width + this.#protected);
    const tail = (aligned: number) =>
      Math.max(0, Math.min(p, this.#maxScheduledTokens - p, maxPrompt - aligned));
    const output = (tokens: number) => 1 + Math.ceil((tokens + reserve) / g);
    const afterHit = (this.#disablePrefixCache ? 0 : 1) + output(tail(p));
    const afterChunk = maxPrompt > this.#maxScheduledTokens ? 1 + output(tail(2 * p)) : 0;
    return Math.max(afterHit, afterChunk);
  }

  #slidingLocalPeak(spec: CacheGroupSpec, limit: number): number {
    const g = spec.blockGranularity;
    const budget = this.#maxScheduledTokens;
    const decode = this.#width + this.#protected;
    const maxPrompt = Math.max(limit - this.#width, 0);
    const whole = Math.ceil((Math.min(maxPrompt, budget) + decode) / g);
    if (maxPrompt <= budget) return whole;
    const middle = lookback(spec) + Math.ceil(budget / g);
    const last = lookback(spec) + Math.ceil((Math.min(maxPrompt - budget, budget) + decode) / g);
    return Math.max(whole, middle, last);
  }

  #concurrentBlocks(spec: CacheGroupSpec, total: number, context: number, numRequests: number): number {
    const g = spec.blockGranularity;
    if (spec.kind === "state") return numRequests * this.#singleBlocks(spec, context);
    const dense = Math.ceil(total / g) + numRequests * Math.ceil((g - 1 + this.#protected) / g);
    if (spec.kind === "full") return dense;
    const resident = Math.min(spec.windowTokens - 1, context) + this.#width + this.#protected + g - 1;
    const window = Math.ceil(resident / g);
    if (this.#role === "decode") return Math.min(dense, numRequests * (lookback(spec) + window));
    return numRequests * window + lookback(spec) + Math.ceil(Math.min(this.#maxScheduledTokens, total) / g);
  }
}

/** Blocks that a match reads in front of its boundary. */
function lookback(spec: CacheGroupSpec): number {
  if (spec.kind === "full") return 0;
  return spec.kind === "state" ? 1 : Math.ceil((spec.windowTokens - 1) / spec.blockGranularity);
}
