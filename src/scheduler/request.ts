/**
 * One submitted request: its state, its tokens and, while it holds blocks, its resources. Decides nothing.
 * When it has ended the object serves another one, whom only its handle and `admissionSerial` tell apart.
 */

import type { RequestProgress } from "../cache/coordinator/request-progress";
import { CompletedPages } from "../cache/coordinator/request-progress";
import { BlockTable } from "../cache/core/block-table";
import { Int32List } from "../cache/core/int32-list";
import { PrefixChain } from "../cache/prefix/prefix-chain";
import { maxInt32 } from "../limits";
import type { RequestSpec } from "./config";
import type { RequestHandle } from "./plan";
import { RequestTokens } from "./request-tokens";

export const requestState = {
  bootstrapping: 0,
  submitted: 1,
  prefilling: 2,
  remotePrefilling: 3,
  /** Prefill role: the last chunk is scheduled, its result is out. */
  prefillAwaitingResult: 4,
  prefillDone: 5,
  decoding: 6,
  retracted: 7,
  finished: 8,
} as const;
export type RequestState = (typeof requestState)[keyof typeof requestState];

export const requestStateNames = Object.keys(requestState) as readonly (keyof typeof requestState)[];

const noCandidates: readonly number[] = [];

export class Request implements RequestProgress {
  handle: RequestHandle = 0;
  id = "";
  readonly tokens = new RequestTokens();
  submittedPromptTokens = 0;
  maxNewTokens = 0;
  maxCachedPrefixTokens = 0;
  /** The request's text belongs to a namespace of its own. */
  hasNamespace = false;
  state: RequestState = requestState.submitted;
  /** Tokens of the prefill window: the prompt, after a retraction with everything generated. */
  prefillTokens = 0;

  /** Resources, valid while the request holds blocks. */
  slot = 0;
  readonly tables: readonly BlockTable[];
  accessEpoch = 0;
  /** Where a chunk must end so that state can be cached beside history; 0 = nowhere. */
  promotionBoundary = 0;
  readonly stateBoundaries = new Int32List(0);
  readonly chain = new PrefixChain();
  readonly completed = new CompletedPages();
  /** The last scheduled chunk is [windowBegin, windowEnd). */
  windowBegin = 0;
  windowEnd = 0;
  /** Forward rows whose results are still out. */
  resultsInFlight = 0;
  /** Counts admissions, the object's in all its lives: a result of an earlier one is told by it. */
  admissionSerial = 0;
  /** The last plan that has a row of the request. */
  lastPlanId = 0;
  /** Tokens that the next decode step consumes. */
  decodeReserveTokens = 0;
  specCandidates: readonly number[] = noCandidates;

  /** Retraction. */
  retractionCount = 0;
  retractionEpoch = 0;
  hasRecoverableSnapshot = false;
  resumesGeneration = false;
  landedTokens = 0;

  /** Hit of the first admission. */
  deviceHitTokens = 0;
  hostHitTokens = 0;
  storageHitTokens = 0;
  wasAdmitted = false;

  /** Links of the queue that the request is in. */
  previous: Request | undefined;
  next: Request | undefined;

  constructor(handle: RequestHandle, spec: RequestSpec, numGroups: number) {
    this.tables = Array.from({ length: numGroups }, () => new BlockTable());
    this.begin(handle, spec);
  }

  /** Begins a request in an object that is new, or whose last request has given everything back. */
  begin(handle: RequestHandle, spec: RequestSpec): void {
    this.handle = handle;
    this.id = spec.requestId;
    this.tokens.adopt(spec.tokens);
    this.submittedPromptTokens = spec.tokens.length;
    this.prefillTokens = spec.tokens.length;
    this.maxNewTokens = spec.maxNewTokens ?? 0;
    this.maxCachedPrefixTokens = spec.maxCachedPrefixTokens ?? maxInt32;
    this.hasNamespace = spec.namespaceRoot !== undefined;
    this.chain.start(spec.namespaceRoot);
    this.slot = 0;
    this.accessEpoch = 0;
    this.promotionBoundary = 0;
    this.stateBoundaries.clear();
    this.completed.clear();
    this.windowBegin = 0;
    this.windowEnd = 0;
    this.resultsInFlight = 0;
    this.lastPlanId = 0;
    this.decodeReserveTokens = 0;
    this.specCandidates = noCandidates;
    this.retractionCount = 0;
    this.retractionEpoch = 0;
    this.hasRecoverableSnapshot = false;
    this.resumesGeneration = false;
    this.landedTokens = 0;
    this.deviceHitTokens = 0;
    this.hostHitTokens = 0;
    this.storageHitTokens = 0;
    this.wasAdmitted = false;
  }

  get holdsBlocks(): boolean {
    return this.state >= requestState.prefilling && this.state <= requestState.decoding;
  }

  /**
   * The frontier up to which computation is scheduled (prefill) or landed (decode); -1 in states without one.
   */
  get numComputedTokens(): number {
    if (this.state === requestState.decoding) return this.tokens.size - 1;
    return this.holdsBlocks ? this.windowEnd : -1;
  }

  /**
   * A first chunk of this request is an ordinary prompt: never
   * admitted, or retracted with nothing to come back to.
   */
  get admitsLikeNewPrompt(): boolean {
    return (
      this.state === requestState.submitted ||
      (this.state === requestState.retracted && !this.hasRecoverableSnapshot)
    );
  }
}
