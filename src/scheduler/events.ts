/**
 * What happened since the last plan, told to the scheduler in
 * order. Plain data, so that a record of it can be replayed.
 */
import type { RequestHandle } from "./plan";

/** One step's results for every row of `plan.forward`, in row order, fed in one call. */
export interface ForwardResult {
  readonly kind: "forwardResult";
  readonly planId: number;
  /** Tokens each row yielded: 0 for an intermediate chunk, 1, or the accepted count of a wider verify. */
  readonly tokenCounts: Int32Array;
  /** The tokens of all rows, one after another. */
  readonly tokens: Int32Array;
  /** Draft tokens of the rows that have some, by row. */
  readonly specCandidates?: readonly (readonly number[] | undefined)[];
}

/**
 * One row's result, for a caller that feeds rows one by one.
 * A row gets either this or its share of a ForwardResult.
 */
export interface ExtendResult {
  readonly kind: "extendResult";
  readonly request: RequestHandle;
  readonly tokens: readonly number[];
  readonly specCandidates?: readonly number[];
}

/**
 * The request is complete. With `keptTokens` its generated tokens are first cut to that many (a stop matched
 * earlier), never below what is published.
 */
export interface Finish {
  readonly kind: "finish";
  readonly request: RequestHandle;
  readonly keptTokens?: number;
}

/** The client is gone: everything is freed, nothing published. */
export interface Abort {
  readonly kind: "abort";
  readonly request: RequestHandle;
}

/**
 * A storage read of the request's last plan missed: it goes back to the queue and computes what was missing.
 */
export interface Retract {
  readonly kind: "retract";
  readonly request: RequestHandle;
}

/**
 * Tokens that the request's next decode step consumes. A
 * ForwardResult implies it when decodeInputTokens is above 1.
 */
export interface UpdateReserve {
  readonly kind: "updateReserve";
  readonly request: RequestHandle;
  readonly numTokens: number;
}

/** A write-back's bytes are on Host. */
export interface WriteBackDone {
  readonly kind: "writeBackDone";
  readonly opId: number;
}

/** A load-back ended; without success nothing of it is published and its requests must be retracted. */
export interface LoadBackDone {
  readonly kind: "loadBackDone";
  readonly opId: number;
  readonly success: boolean;
}

/** The two sides of a disaggregated request found each other. */
export interface Bootstrapped {
  readonly kind: "bootstrapped";
  readonly request: RequestHandle;
}

/** Decode role: the prompt's blocks arrived together with the first token. */
export interface RemotePrefillDone {
  readonly kind: "remotePrefillDone";
  readonly request: RequestHandle;
  readonly token: number;
}

/** Prefill role: the decode worker has everything. */
export interface TransferSucceeded {
  readonly kind: "transferSucceeded";
  readonly request: RequestHandle;
}

export interface TransferFailed {
  readonly kind: "transferFailed";
  readonly request: RequestHandle;
}

export type SchedulerEvent =
  | ForwardResult
  | ExtendResult
  | Finish
  | Abort
  | Retract
  | UpdateReserve
  | WriteBackDone
  | LoadBackDone
  | Bootstrapped
  | RemotePrefillDone
  | TransferSucceeded
  | TransferFailed;
