/**
 * Makes room when nothing else does: takes the blocks of the cheapest victim and offers them at once to
 * whoever was blocked. Runs after a round's phases and only when no prompt got further in it.
 */

import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import { numNewlyReleasableLcmBlocks } from "../cache/coordinator/capacity-views";
import { queueChainStores } from "../cache/coordinator/store-queueing";
import type { Admissions, ScheduleOutcome } from "./admissions";
import { isCovered } from "./headroom";
import { type Request, requestState } from "./request";
import type { RequestBook } from "./request-book";
import type { RequestReleaser } from "./request-releaser";
import type { Round } from "./round";
import type { Rounds } from "./rounds";
import type { SchedulerSettings } from "./settings";

export class Retraction {
  readonly #settings: SchedulerSettings;
  readonly #coordinator: CacheCoordinator;
  readonly #book: RequestBook;
  readonly #admissions: Admissions;
  readonly #rounds: Rounds;
  readonly #releaser: RequestReleaser;

  constructor(
    settings: SchedulerSettings,
    coordinator: CacheCoordinator,
    book: RequestBook,
    admissions: Admissions,
    rounds: Rounds,
    releaser: RequestReleaser,
  ) {
    this.#settings = settings;
    this.#coordinator = coordinator;
    this.#book = book;
    this.#admissions = admissions;
    this.#rounds = rounds;
    this.#releaser = releaser;
  }

  /** Retracts until the blocker is served or nothing more can be done for it. */
  run(round: Round): void {
    if (this.#settings.role === "prefill" || round.hasPrefillProgress || round.blocker === undefined) return;
    if (this.#coordinator.tier?.holdsDeviceBlocks === true) return;
    let blocker: Request = round.blocker;
    for (;;) {
      const ordinary = this.#victim(false);
      const isRepeated = ordinary === undefined && !round.plan.hasRows;
      const victim = isRepeated ? this.#victim(true) : ordinary;
      if (victim === undefined || victim.resultsInFlight > 0) return;
      const wasIncomplete = victim.state === requestState.prefilling;
      this.#retract(victim, round);
      if (blocker === victim && this.#book.numHoldingBlocks === 0) this.#coordinator.dropScattered();
      // Who holds blocks comes before who does not, or requests
      // that never fit beside them could take turns for ever.
      if (isRepeated || (wasIncomplete && !round.plan.hasRows)) {
        this.#rounds.decodeBatch(round, 0);
        if (round.hasDecodes && !this.#settings.mixesPrefillAndDecode) return;
        if (!round.plan.hasRows && this.#rounds.residentChunk(round)) return;
      }
      if (blocker === victim) {
        const other = this.#firstNewPromptBut(victim);
        if (other === undefined) return;
        blocker = other;
      }
      if (blocker.lastPlanId === round.plan.planId) return;
      if (round.isFull || !this.#mayGrant(blocker, round)) return;
      if (this.#grant(blocker, round) !== "short") return;
    }
  }

  /**
   * Incomplete prompts first, the longest; then the decoder
   * whose blocks give most. Covered requests are exempt.
   */
  #victim(includesCovered: boolean): Request | undefined {
    let best: Request | undefined;
    for (let request = this.#book.prefilling.first; request !== undefined; request = request.next) {
      if (!includesCovered && isCovered(request)) continue;
      if (best === undefined || request.tokens.size > best.tokens.size) best = request;
    }
    return best ?? this.#decodableVictim(includesCovered);
  }

  #decodableVictim(includesCovered: boolean): Request | undefined {
    let best: Request | undefined;
    let bestReleasable = 0;
    for (let request = this.#book.decodable.first; request !== undefined; request = request.next) {
      if (!includesCovered && isCovered(request)) continue;
      const releasable = numNewlyReleasableLcmBlocks(this.#coordinator, request.tables);
      if (best !== undefined) {
        if (releasable < bestReleasable) continue;
        if (releasable === bestReleasable && !isCheaper(request, best)) continue;
      }
      best = request;
      bestReleasable = releasable;
    }
    return best;
  }

  /**
   * Publishes what is computed when there is a Host to keep
   * it, starts the snapshot's copy and frees everything.
   */
  #retract(victim: Request, round: Round): void {
    victim.retractionCount++;
    const frontier = victim.numComputedTokens;
    if (this.#settings.hasHostCache) {
      this.#admissions.progress.prepare(victim, frontier, frontier, false);
      this.#releaser.publish(victim, frontier);
      queueChainStores(this.#coordinator, victim.chain, frontier);
      const op = this.#coordinator.tier?.startPendingStores(false);
      if (op !== undefined) round.plan.writeBacks.push(op);
    }
    this.#releaser.retract(victim, this.#settings.hasHostCache || this.#settings.role === "decode");
  }

  /** A prompt's chunk must not join decodes where the two do not mix. */
  #mayGrant(blocker: Request, round: Round): boolean {
    if (!this.#isLocalPrefillWork(blocker)) return true;
    return !round.hasDecodes || this.#settings.mixesPrefillAndDecode;
  }

  #isLocalPrefillWork(request: Request): boolean {
    if (request.state === requestState.prefillDone || request.state === requestState.decoding) return false;
    return this.#settings.role !== "decode" || request.state === requestState.prefilling;
  }

  #grant(blocker: Request, round: Round): ScheduleOutcome {
    if (blocker.state === requestState.prefillDone || blocker.state === requestState.decoding) {
      const outcome = this.#admissions.decode(blocker, round.plan);
      if (outcome === "scheduled" && this.#settings.role !== "decode") {
        round.budget -= this.#settings.decodeInputTokens;
      }
      return outcome;
    }
    if (this.#isLocalPrefillWork(blocker)) return this.#rounds.chunk(blocker, round);
    return this.#admissions.remotePrompt(blocker, round.plan);
  }

  #firstNewPromptBut(victim: Request): Request | undefined {
    const first = this.#book.newPrompts.first;
    return first === victim ? first.next : first;
  }
}

/** Among victims that give equally much: fewer tokens to compute again, then the smaller id. */
function isCheaper(a: Request, b: Request): boolean {
  if (a.tokens.size !== b.tokens.size) return a.tokens.size < b.tokens.size;
  return a.id < b.id;
}
