/**
 * The order in which a round serves requests, for each role.
 * Serving itself is Admissions', making room is Retraction's.
 */
import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import { canEveryGroupGetABlock } from "../cache/coordinator/capacity-views";
import type { Admissions, ScheduleOutcome } from "./admissions";
import { minPrefillChunkTokens, replayTokens } from "./chunk";
import { NewPromptScan } from "./new-prompt-scan";
import { type Request, requestState } from "./request";
import type { RequestBook } from "./request-book";
import type { Round } from "./round";
import type { SchedulerSettings } from "./settings";

export class Rounds {
  readonly #settings: SchedulerSettings;
  readonly #coordinator: CacheCoordinator;
  readonly #book: RequestBook;
  readonly #admissions: Admissions;
  readonly #minPrefillChunkTokens: number;
  readonly #scan = new NewPromptScan();

  constructor(
    settings: SchedulerSettings,
    coordinator: CacheCoordinator,
    book: RequestBook,
    admissions: Admissions,
  ) {
    this.#settings = settings;
    this.#coordinator = coordinator;
    this.#book = book;
    this.#admissions = admissions;
    this.#minPrefillChunkTokens = minPrefillChunkTokens(settings);
  }

  /** Runs the phases of the role, all but retraction. */
  run(round: Round): void {
    if (this.#settings.role === "prefill") this.#runPrefillRole(round);
    else if (this.#settings.role === "decode") this.#runDecodeRole(round);
    else this.#runFused(round);
  }

  /**
   * Ends a mixed round. What was kept back for a prompt that could not get in, even by retraction, would
   * otherwise keep everybody waiting for ever. True when even so nothing could be built.
   */
  spendWhatWasKeptBack(round: Round): boolean {
    if (!this.#settings.mixesPrefillAndDecode || round.plan.hasRows) return false;
    this.decodeBatch(round, 0);
    return !round.plan.hasRows;
  }

  /**
   * The retracted request that comes back next: those in mid-generation first, then the longest retracted.
   */
  readmission(): Request | undefined {
    let best: Request | undefined;
    for (let request = this.#book.recoverable.first; request !== undefined; request = request.next) {
      if (best === undefined || comesBackBefore(request, best)) best = request;
    }
    return best;
  }

  /** One decode step for every request that can take one. */
  decodeBatch(round: Round, keptBack: number): void {
    const width = this.#settings.decodeInputTokens;
    const isFree = this.#settings.role === "decode";
    let request = this.#book.decodable.first;
    while (request !== undefined) {
      const next = request.next;
      if (round.isFull || (!isFree && round.budget < keptBack + width)) return;
      if (this.#admissions.decode(request, round.plan) === "scheduled") {
        if (!isFree) round.budget -= width;
      } else round.blockedBy(request);
      request = next;
    }
  }

  /**
   * A chunk of any request that needs one, in whatever state it is. When nobody else holds a block and it
   * still does not fit, what it would reuse is in its own way: a first chunk is tried without its hit. A
   * decode worker's pool is sized for what peers send, not for chunks of its own: there it is tried with
   * ever less of the budget as well.
   */
  chunk(request: Request, round: Round): ScheduleOutcome {
    const isResident = request.state === requestState.prefilling;
    let outcome = this.#tryChunk(request, round, round.budget, false);
    if (outcome === "short" && this.#book.numHoldingBlocks === Number(isResident)) {
      if (!isResident) outcome = this.#tryChunk(request, round, round.budget, true);
      const smallest = this.#settings.role === "decode" ? 1 : round.budget;
      for (let budget = round.budget >> 1; outcome === "short" && budget >= smallest; budget >>= 1) {
        outcome = this.#tryChunk(request, round, budget, true);
      }
    }
    if (outcome !== "scheduled") return outcome;
    const replay = isResident ? 0 : replayTokens(request.windowBegin, this.#settings.replayWindowTokens);
    round.chargePrefill(request, replay);
    return outcome;
  }

  #tryChunk(request: Request, round: Round, budget: number, ignoresHit: boolean): ScheduleOutcome {
    return request.state === requestState.prefilling
      ? this.#admissions.nextChunk(request, budget, round.plan)
      : this.#admissions.firstChunk(request, budget, round.plan, ignoresHit);
  }

  /** A chunk of the first incomplete prompt that fits; true when there was one. */
  residentChunk(round: Round): boolean {
    let request = this.#book.prefilling.first;
    while (request !== undefined) {
      const next: Request | undefined = request.next;
      if (this.chunk(request, round) === "scheduled") return true;
      request = next;
    }
    return false;
  }

  #runFused(round: Round): void {
    const readmission = this.readmission();
    if (this.#settings.mixesPrefillAndDecode) {
      const expectsPrefill =
        readmission !== undefined || this.#book.prefilling.size > 0 || this.#book.newPrompts.size > 0;
      this.decodeBatch(round, expectsPrefill ? this.#minPrefillChunkTokens : 0);
      this.#localPrefillWork(round, readmission);
    } else {
      this.#localPrefillWork(round, readmission);
      if (round.plan.forward.numPrefillRows === 0) this.decodeBatch(round, 0);
    }
  }

  /** Hands finished prompts over, then computes more of them. */
  #runPrefillRole(round: Round): void {
    let request = this.#book.decodable.first;
    while (request !== undefined) {
      const next = request.next;
      if (request.state === requestState.prefillDone) {
        if (this.#admissions.decode(request, round.plan) !== "scheduled") round.blockedBy(request);
      }
      request = next;
    }
    this.#localPrefillWork(round, undefined);
  }

  /** A local recovery goes alone; else decodes and at most one prompt for a peer. */
  #runDecodeRole(round: Round): void {
    const resident = this.#book.prefilling.first;
    if (resident !== undefined) {
      const outcome = this.chunk(resident, round);
      if (outcome === "scheduled") return;
      if (outcome === "short") round.blockedBy(resident);
    } else {
      const readmission = this.readmission();
      if (readmission !== undefined && this.chunk(readmission, round) === "scheduled") return;
    }
    this.decodeBatch(round, 0);
    let request = this.#book.newPrompts.first;
    while (request !== undefined && this.#admissions.hasFreeSlot) {
      const next = request.next;
      let outcome = this.#admissions.remotePrompt(request, round.plan);
      if (outcome === "short" && this.#book.numHoldingBlocks === 0) {
        outcome = this.#admissions.remotePrompt(request, round.plan, true);
      }
      if (outcome === "scheduled") return;
      if (outcome === "short") round.blockedBy(request);
      request = next;
    }
  }

  /**
   * Readmission, residents, new prompts; ends at the first prompt that is still incomplete after its chunk.
   */
  #localPrefillWork(round: Round, readmission: Request | undefined): void {
    let isSealed = false;
    if (readmission !== undefined && !round.isFull) {
      const outcome = this.chunk(readmission, round);
      if (outcome === "scheduled" && readmission.state === requestState.prefilling) return;
      isSealed = outcome === "short";
    }
    let resident = this.#book.prefilling.first;
    while (resident !== undefined) {
      const next: Request | undefined = resident.next;
      if (round.isFull) return;
      const outcome = this.chunk(resident, round);
      if (outcome === "short") {
        round.blockedBy(resident);
        return;
      }
      if (outcome === "scheduled" && resident.state === requestState.prefilling) return;
      resident = next;
    }
    if (!isSealed) this.#newPrompts(round);
  }

  #newPrompts(round: Round): void {
    const version = this.#coordinator.changeVersion;
    let request = this.#scan.start(this.#book.newPrompts, version, round.budget);
    if (this.#scan.firstShort !== undefined) round.blockedBy(this.#scan.firstShort);
    while (request !== undefined && this.#scan.mayTry) {
      const next: Request | undefined = request.next;
      const { numComputed } = request.chain;
      if (round.isFull || !this.#admissions.hasFreeSlot) return;
      if (!canEveryGroupGetABlock(this.#coordinator)) {
        round.blockedBy(this.#book.newPrompts.first ?? request);
        return;
      }
      const outcome = this.chunk(request, round);
      if (outcome === "short") round.blockedBy(request);
      if (outcome === "scheduled") {
        this.#scan.admitted(next);
        if (request.state === requestState.prefilling) return;
        request = next;
      } else {
        const hashedPages = request.chain.numComputed - numComputed;
        request = this.#scan.refused(request, outcome === "short", request.chain.numComputed, hashedPages);
      }
    }
  }
}

function comesBackBefore(a: Request, b: Request): boolean {
  if (a.resumesGeneration !== b.resumesGeneration) return a.resumesGeneration;
  return a.retractionEpoch < b.retractionEpoch;
}
