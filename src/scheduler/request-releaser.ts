/**
 * The ways in which a request stops holding blocks: finished
 * with its work published, aborted, or retracted to come back.
 */
import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import { queueChainStores } from "../cache/coordinator/store-queueing";
import type { WriteBackOp } from "./plan";
import { type Request, requestState } from "./request";
import type { RequestBook } from "./request-book";
import type { RequestProgressKeeper } from "./request-progress-keeper";
import type { RequestSlots } from "./request-slots";
import type { SchedulerSettings } from "./settings";

export class RequestReleaser {
  readonly #settings: SchedulerSettings;
  readonly #coordinator: CacheCoordinator;
  readonly #book: RequestBook;
  readonly #slots: RequestSlots;
  readonly #progress: RequestProgressKeeper;
  #retractionClock = 0;
  /** Stores that finished requests started since the last plan. */
  readonly startedStores: WriteBackOp[] = [];

  constructor(
    settings: SchedulerSettings,
    coordinator: CacheCoordinator,
    book: RequestBook,
    slots: RequestSlots,
    progress: RequestProgressKeeper,
  ) {
    this.#settings = settings;
    this.#coordinator = coordinator;
    this.#book = book;
    this.#slots = slots;
    this.#progress = progress;
  }

  get numRetractions(): number {
    return this.#retractionClock;
  }

  /** Ends a request whose work is complete: others may reuse all of it. */
  finish(request: Request): void {
    if (request.state === requestState.prefillDone || request.state === requestState.decoding) {
      const frontier = request.tokens.size - 1;
      this.#progress.prepareFinal(request, frontier);
      this.publish(request, frontier);
      if (this.#settings.streamsDeviceToHost) {
        queueChainStores(this.#coordinator, request.chain, request.prefillTokens);
        const op = this.#coordinator.tier?.startPendingStores(true);
        if (op !== undefined) this.startedStores.push(op);
      }
    }
    this.end(request);
  }

  /** Ends a request and publishes nothing. */
  end(request: Request): void {
    if (request.holdsBlocks) this.#freeResources(request);
    this.#book.moveTo(request, requestState.finished);
    request.chain.release(this.#coordinator.buffers);
    request.tokens.release(this.#coordinator.buffers);
  }

  /** Sends a request back to the queue; what it generated becomes part of its prompt. */
  retract(request: Request, hasRecoverableSnapshot: boolean): void {
    request.landedTokens = landedTokens(request);
    this.#freeResources(request);
    request.tokens.rebase(this.#coordinator.buffers);
    request.prefillTokens = request.tokens.size;
    request.resumesGeneration = request.tokens.size > request.submittedPromptTokens;
    request.retractionEpoch = ++this.#retractionClock;
    this.#book.retract(request, hasRecoverableSnapshot);
  }

  /** Publishes the pages that were prepared, if any. */
  publish(request: Request, frontier: number): void {
    if (request.completed.numPages === 0) return;
    this.#coordinator.cacheCompletedBlocks(request.tables, request, request.accessEpoch);
    this.#progress.settle(request, frontier);
  }

  #freeResources(request: Request): void {
    this.#coordinator.free(request.tables);
    this.#slots.give(request.slot);
    request.slot = 0;
    request.accessEpoch = 0;
    request.resultsInFlight = 0;
    request.promotionBoundary = 0;
    request.stateBoundaries.clear();
    request.completed.clear();
    request.chain.numKnown = 0;
  }
}

/** Tokens whose computation is known to have happened. */
function landedTokens(request: Request): number {
  switch (request.state) {
    case requestState.decoding:
      return request.tokens.size - 1;
    case requestState.remotePrefilling:
      return 0;
    default:
      return request.resultsInFlight === 0 ? request.windowEnd : request.windowBegin;
  }
}
