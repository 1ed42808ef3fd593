/**
 * Keeps a request's progress in step with its admissions: prepares what an admission publishes, and settles
 * it when the admission went through. A failed admission leaves no trace.
 */
import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import { boundaryKind } from "../cache/prefix/prefix-cache-index";
import { historyKind, stateKind } from "./boundary-kinds";
import { lastStateBoundary } from "./demands";
import type { KvCacheEventLog } from "./kv-cache-event-log";
import type { Request } from "./request";
import type { SchedulerSettings } from "./settings";

export class RequestProgressKeeper {
  readonly #settings: SchedulerSettings;
  readonly #coordinator: CacheCoordinator;
  readonly #kvEvents: KvCacheEventLog | undefined;

  constructor(
    settings: SchedulerSettings,
    coordinator: CacheCoordinator,
    kvEvents: KvCacheEventLog | undefined,
  ) {
    this.#settings = settings;
    this.#coordinator = coordinator;
    this.#kvEvents = kvEvents;
  }

  /** A new admission begins with the pages of its hit. */
  open(request: Request, hitTokens: number): void {
    request.chain.numKnown = hitTokens / this.#settings.prefixGranularity;
    request.completed.clear();
    request.stateBoundaries.clear();
    this.#kvEvents?.describe(request, true);
  }

  /**
   * Computes the hashes that the next admission publishes
   * under, so that a first decode round is not the one to pay.
   */
  hashAhead(request: Request, frontier: number): void {
    const numPages = Math.floor(frontier / this.#settings.prefixGranularity);
    request.chain.extend(numPages, request.tokens, this.#coordinator.hasher, this.#coordinator.buffers);
  }

  /**
   * Hashes the pages completed at `frontier` and notes what
   * they mean. `size` is what state boundaries are judged by.
   */
  prepare(request: Request, frontier: number, size: number, streamToHost: boolean): void {
    const { completed, chain } = request;
    const numPages = this.#extend(request, frontier);
    if (numPages === 0) return;
    completed.boundaryKind = historyKind(frontier, request.prefillTokens, request.promotionBoundary);
    completed.firstNewPage = chain.numKnown;
    completed.numPages = numPages;
    completed.stateKind = stateKind(
      completed,
      request.stateBoundaries,
      size,
      this.#settings.prefixGranularity,
    );
    completed.streamToHost = streamToHost;
  }

  /** The same for a request that finished: its end is an endpoint for everybody. */
  prepareFinal(request: Request, frontier: number): void {
    const { completed, chain } = request;
    const numPages = this.#extend(request, frontier);
    if (numPages === 0) return;
    completed.firstNewPage = chain.numKnown;
    completed.numPages = numPages;
    completed.boundaryKind = boundaryKind.endpoint;
    completed.stateKind = boundaryKind.endpoint;
    completed.streamToHost = false;
  }

  /** The prepared pages were published at `frontier`. */
  settle(request: Request, frontier: number): void {
    const { completed, chain, stateBoundaries } = request;
    if (completed.numPages === 0) return;
    chain.numKnown = completed.numPages;
    completed.clear();
    this.#kvEvents?.describe(request, false);
    if (frontier >= request.promotionBoundary) request.promotionBoundary = 0;
    const covered = chain.numKnown * this.#settings.prefixGranularity;
    let kept = 0;
    for (let i = 0; i < stateBoundaries.length; i++) {
      if (stateBoundaries.items[i] > covered) stateBoundaries.items[kept++] = stateBoundaries.items[i];
    }
    stateBoundaries.length = kept;
  }

  /** Records the snapshots that the local chunk (begin, end] leaves behind. */
  recordLocalChunk(request: Request, begin: number, end: number): void {
    const { prefixGranularity } = this.#settings;
    const boundary = lastStateBoundary(end, end === request.prefillTokens, prefixGranularity);
    if (boundary > begin && boundary < end) this.#record(request, boundary);
    if (end % prefixGranularity === 0) this.#record(request, end);
  }

  /** A peer leaves a snapshot only at the end of the prompt. */
  recordRemotePrompt(request: Request): void {
    if (request.prefillTokens % this.#settings.prefixGranularity === 0)
      this.#record(request, request.prefillTokens);
  }

  #record(request: Request, boundary: number): void {
    const { stateBoundaries, chain } = request;
    if (!this.#settings.hasStateGroup) return;
    if (boundary / this.#settings.prefixGranularity <= chain.numKnown) return;
    const last = stateBoundaries.length > 0 ? stateBoundaries.items[stateBoundaries.length - 1] : 0;
    if (boundary > last) stateBoundaries.push(boundary);
  }

  /** Pages completed at the frontier if some are new, else 0. */
  #extend(request: Request, frontier: number): number {
    const { chain, completed, tokens } = request;
    completed.clear();
    const numPages = Math.floor(frontier / this.#settings.prefixGranularity);
    if (numPages <= chain.numKnown) return 0;
    chain.extend(numPages, tokens, this.#coordinator.hasher, this.#coordinator.buffers);
    const endsPrompt = numPages * this.#settings.prefixGranularity === request.prefillTokens;
    completed.repeatPage = endsPrompt ? numPages - 1 : 0;
    return numPages;
  }
}
