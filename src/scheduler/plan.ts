/**
 * What one scheduling round decided, as data for an executor. Plans live in a ring of overlapScheduleDepth +
 * 2: a plan and everything it refers to stays as it is until its results were fed back, whatever becomes of
 * its requests meanwhile, and is overwritten later. Readers never write. `docs/scheduler.md` says how a plan
 * is carried out.
 */
import type { BlockId } from "../cache/core/ids";
import type { LoadBackOp, TransferOp, WriteBackOp } from "../cache/tier/transfer-types";

export type { LoadBackOp, TransferOp, WriteBackOp };

/** Names one submitted request for its whole life; never used again for another. */
export type RequestHandle = number;

/** One request's share of a step. */
export interface ForwardRow {
  readonly request: RequestHandle;
  readonly requestId: string;
  /** The request slot, 1..maxBatchSize, held from the first chunk until the request ends or is retracted. */
  readonly slot: number;
  readonly isPrefill: boolean;
  /** First chunk since (re)admission: the slot's tables start anew. */
  readonly isFirstChunk: boolean;
  /** First decode step after a prompt: with this plan the whole prompt is published for others. */
  readonly isFirstDecode: boolean;
  /**
   * Prefill: position of the first new token. Decode: position of the first input token, exact when every
   * result still out yields one token; with a verify width above 1 and results out the device knows better.
   */
  readonly begin: number;
  /** Prefill: new tokens. Decode: decodeInputTokens. */
  readonly size: number;
  /** Cached tokens re-fed in front of `begin` to regenerate replayable groups; 0 for most. */
  readonly replay: number;
  /**
   * `size + replay`. The row's input is `tokens[begin - replay,
   * begin + size)`; for a decode row see decodeInputId.
   */
  readonly inputLength: number;
  /**
   * The request's own tokens, `prefillLength` of them at
   * least. Not to be written, not to be kept past the plan.
   */
  readonly tokens: Int32Array;
  /** Tokens of the whole prefill window: the prompt, after a retraction with the generated tokens. */
  readonly prefillLength: number;
  /** The prompt is complete after this row: its last position must be sampled. */
  readonly completesPrompt: boolean;
  /**
   * Position, strictly inside (begin, begin + size), at which state groups must keep a snapshot; 0 = none.
   */
  readonly internalStateBoundary: number;
  /** Decode: the input id, or -1 when the executor has the last sampled token itself. */
  readonly decodeInputId: number;
  /** Draft tokens that came with the request's last result; empty without speculation. */
  readonly specCandidates: readonly number[];
  /** Results of this request still out before this row. */
  readonly resultsInFlight: number;
  /** On a first chunk, tokens found on the device, loaded from Host, and fetched from storage. */
  readonly deviceHitTokens: number;
  readonly hostHitTokens: number;
  readonly storageHitTokens: number;
}

/**
 * What changed in one group's tables since the rows' previous plans. For row i apply, in this order:
 * 1. if the row is a first chunk, empty the slot's table;
 * 2. replaced: for k in [replacedOffsets[i], replacedOffsets[i+1]):
 *    table[replacedColumns[k]] = replacedIds[k];
 * 3. nulled: table[c] = 0 for c in [nulledBegins[i], nulledEnds[i]);
 * 4. appended: appendedIds[appendedOffsets[i] .. appendedOffsets[i+1]) at the end of the table (0 = hole).
 */
export interface GroupTableChanges {
  readonly replacedOffsets: Int32Array;
  readonly replacedColumns: Int32Array;
  readonly replacedIds: Int32Array;
  readonly nulledBegins: Int32Array;
  readonly nulledEnds: Int32Array;
  readonly appendedOffsets: Int32Array;
  readonly appendedIds: Int32Array;
  /** Length of the table after the changes, in blocks. */
  readonly tableLengths: Int32Array;
}

/** A list of rows and what became of their tables; prefill rows first, then decode rows. */
export interface ForwardBatch {
  readonly rows: readonly ForwardRow[];
  readonly numPrefills: number;
  /** One a cache group, in configuration order; indexed by the row's position in this batch. */
  readonly tableChanges: readonly GroupTableChanges[];
}

/** Ids in the first `length` entries of `ids`; the rest is stale. */
export interface BlockIdList {
  readonly ids: Int32Array;
  readonly length: number;
}

export interface ExecutionPlan {
  /** Counts up from 1; results name it. */
  readonly planId: number;
  readonly forward: ForwardBatch;
  /** Prefill role: prompts handed to a decode worker. Decode role: prompts a prefill worker shall compute. */
  readonly remoteDecode: ForwardBatch;
  readonly remotePrefill: ForwardBatch;
  /** Write-backs are carried out before zeroing, zeroing before load-backs, load-backs before the forward. */
  readonly writeBacks: readonly WriteBackOp[];
  /** One a cache group: fresh blocks to clear before anything reads them. */
  readonly blocksToZero: readonly BlockIdList[];
  readonly loadBacks: readonly LoadBackOp[];
  /** True when the plan asks for nothing at all. */
  readonly isEmpty: boolean;
  /**
   * The whole table of a forward row, padded with -1 to the widest row of
   * the batch. For tests and tools; valid until the next plan is built.
   */
  blockTableRow(group: number, row: number): readonly BlockId[];
}
