/**
 * What crosses between the main thread and the engine's thread. Plain data and typed arrays only; every id is
 * a number that the main thread chose and never uses twice.
 */
import type { LogprobRows } from "../executor/logprob-rows";
import type { SamplingOptions } from "../executor/sampling-options";

export type { LogprobRows, SamplingOptions };

/** Who ends a request and with how many tokens. */
export interface StopOptions {
  /** Generated tokens at most; 0 computes (and publishes) the prompt only. */
  readonly maxTokens: number;
  /** No end token is sampled before this many. */
  readonly minTokens: number;
  readonly ignoreEos: boolean;
  /** Ids that end the request beside the model's own end tokens. */
  readonly stopTokenIds: readonly number[];
}

/**
 * Log-probabilities wanted at each position: absent = none,
 * 0 = of the token alone, -1 = of the whole vocabulary.
 */
export type LogprobCount = number;

export interface EngineRequest {
  readonly id: number;
  readonly tokens: Int32Array;
  /** Choices to generate from the one prompt; at least 1. */
  readonly numChoices: number;
  readonly sampling: SamplingOptions;
  readonly stop: StopOptions;
  readonly logprobs?: LogprobCount;
  readonly promptLogprobs?: LogprobCount;
  /** 32 bytes that start the hash chain (adapter, salt, tenant); absent for the common namespace. */
  readonly namespaceRoot?: Uint8Array;
  /** Tokens that may be taken from the cache at most. */
  readonly maxCachedPrefixTokens?: number;
}

export type EngineCommand =
  | { readonly kind: "submit"; readonly request: EngineRequest }
  /** A stop string ended at generated token `keptTokens` of this choice. */
  | { readonly kind: "finish"; readonly id: number; readonly choice: number; readonly keptTokens: number }
  /** The client is gone; every choice ends. */
  | { readonly kind: "abort"; readonly id: number }
  /** Drops every cached prefix; answered by a `flushed` message. */
  | { readonly kind: "flush"; readonly id: number }
  /** Takes no new work, ends when the running work has ended. */
  | { readonly kind: "drain" }
  | { readonly kind: "stop" };

/** `stop`: an end token or stop id. `error`: the engine could not go on with this request. */
export type FinishReason = "stop" | "length" | "abort" | "error";

/** News of one choice of one request from one step. */
export interface TokenChunk {
  readonly id: number;
  readonly choice: number;
  readonly tokens: Int32Array;
  readonly finish?: FinishReason;
  /**
   * The end token or stop id that ended it, when `finish`
   * is "stop" and a token did. It is the last of `tokens`.
   */
  readonly stopTokenId?: number;
  /** On the choice's first chunk: prompt tokens that came from the cache. */
  readonly cachedTokens?: number;
  readonly logprobs?: LogprobRows;
  /**
   * Prompt positions computed in this step; position 0 has no
   * row. A retraction may repeat positions: the first counts.
   */
  readonly promptLogprobs?: LogprobRows;
  /** With finish "error": one sentence. */
  readonly error?: string;
}

/** Numbers for metrics and health, sent along at most every 100 ms and after the last step before idling. */
export interface EngineGauges {
  readonly steps: number;
  readonly waiting: number;
  readonly prefilling: number;
  readonly decoding: number;
  readonly totalLcmBlocks: number;
  readonly availableLcmBlocks: number;
  readonly emptyLcmBlocks: number;
  readonly activeLcmBlocks: number;
  readonly cachedBlocks: number;
  readonly retractions: number;
  readonly evictions: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly generationTokens: number;
  readonly nanAborts: number;
}

export type EngineMessage =
  /** Loading, `fraction` in 0..1. */
  | { readonly kind: "progress"; readonly stage: string; readonly fraction: number }
  | { readonly kind: "ready"; readonly limits: EngineLimits; readonly report: readonly string[] }
  | {
      readonly kind: "step";
      /** Chunks that are integers alone, as chunk-codec.ts packs them. */
      readonly packed: Int32Array;
      /** Those that carry more. A choice has one chunk a step, here or there. */
      readonly chunks: readonly TokenChunk[];
      readonly gauges?: EngineGauges;
    }
  | { readonly kind: "flushed"; readonly id: number; readonly cleared: boolean }
  /** The engine's thread is done; with `error` it failed and nothing will be answered any more. */
  | {
      readonly kind: "stopped";
      readonly error?: string;
      /** Of a broken invariant: the engine's state as JSON. */
      readonly dump?: string;
    };

/** What a server must know to refuse a request before it is queued. */
export interface EngineLimits {
  readonly vocabSize: number;
  /** Prompt + generated tokens of one request. */
  readonly maxModelLen: number;
  /** Prefix hits are multiples of it. */
  readonly prefixGranularity: number;
  readonly numLcmBlocks: number;
  readonly maxNumSeqs: number;
}
