/**
 * Applies what happened to the requests it happened to. Each
 * event is admitted in some states and is misuse in the others.
 */
import { broken, demand, refuse } from "../assert";
import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import { isCount } from "./count";
import type { ExtendResult, Finish, ForwardResult, RemotePrefillDone, SchedulerEvent } from "./events";
import type { PlanRing } from "./plan-ring";
import type { RowBuffer } from "./plan-rows";
import { type Request, requestState, requestStateNames } from "./request";
import type { RequestBook } from "./request-book";
import type { RequestReleaser } from "./request-releaser";
import type { SchedulerSettings } from "./settings";

export class EventHandler {
  readonly #settings: SchedulerSettings;
  readonly #coordinator: CacheCoordinator;
  readonly #book: RequestBook;
  readonly #releaser: RequestReleaser;
  readonly #plans: PlanRing;

  constructor(
    settings: SchedulerSettings,
    coordinator: CacheCoordinator,
    book: RequestBook,
    releaser: RequestReleaser,
    plans: PlanRing,
  ) {
    this.#settings = settings;
    this.#coordinator = coordinator;
    this.#book = book;
    this.#releaser = releaser;
    this.#plans = plans;
  }

  apply(event: SchedulerEvent): void {
    if (event.kind === "forwardResult") this.#forwardResult(event);
    else if (event.kind === "writeBackDone")
      this.#transferDone(this.#coordinator.tier?.writeBackDone(event.opId));
    else if (event.kind === "loadBackDone") {
      this.#transferDone(this.#coordinator.tier?.loadBackDone(event.opId, event.success));
    } else {
      const request = this.#book.byHandle(event.request);
      if (request !== undefined) this.#applyTo(request, event);
    }
  }

  /** Whether a Finish is admitted in the request's state. */
  canFinish(request: Request): boolean {
    if (this.isTransferInFlight(request)) return false;
    switch (request.state) {
      case requestState.prefillDone:
      case requestState.prefillAwaitingResult:
      case requestState.decoding:
      case requestState.retracted:
      case requestState.finished:
        return true;
      default:
        return false;
    }
  }

  /** A peer reads or writes the request's blocks: derived from role and state, never stored. */
  isTransferInFlight(request: Request): boolean {
    if (this.#settings.role === "prefill") return request.holdsBlocks;
    return this.#settings.role === "decode" && request.state === requestState.remotePrefilling;
  }

  #applyTo(
    request: Request,
    event: Exclude<SchedulerEvent, { kind: "forwardResult" | "writeBackDone" | "loadBackDone" }>,
  ): void {
    switch (event.kind) {
      case "extendResult":
        this.#extendResult(request, event);
        return;
      case "finish":
        this.#finish(request, event);
        return;
      case "abort":
      case "transferFailed":
        if (request.state !== requestState.finished) this.#releaser.end(request);
        return;
      case "retract":
        if (request.holdsBlocks) this.#releaser.retract(request, false);
        else this.#admitOnly(request, event.kind, requestState.finished, requestState.retracted);
        return;
      case "updateReserve":
        if (request.state === requestState.finished) return;
        this.#admitOnly(request, event.kind, requestState.decoding);
        demandCount(event.numTokens, "a reserve");
        request.decodeReserveTokens = event.numTokens;
        return;
      case "bootstrapped":
        if (request.state === requestState.bootstrapping) this.#book.moveTo(request, requestState.submitted);
        return;
      case "remotePrefillDone":
        this.#remotePrefillDone(request, event);
        return;
      case "transferSucceeded":
        if (request.state === requestState.finished) return;
        this.#admitOnly(request, event.kind, requestState.prefillDone, requestState.decoding);
        this.#releaser.end(request);
    }
  }

  /**
   * Shares one step's tokens out over the rows of its plan.
   * A request that is gone gets nothing, all gone: no plan.
   */
  #forwardResult({ planId, tokenCounts, tokens, specCandidates }: ForwardResult): void {
    const plan = this.#plans.find(planId);
    if (planId <= 0 || planId > this.#plans.lastPlanId || plan?.hasResults === true)
      refuse("unknownPlan", `Scheduler: plan ${planId} awaits no results`);
    if (plan === undefined) return;
    const { rows } = plan.forward;
    this.#checkResult(planId, rows, tokenCounts, tokens);
    plan.hasResults = true;
    const width = this.#settings.decodeInputTokens;
    let at = 0;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      const request = row.source;
      const count = tokenCounts[i];
      const end = at + count;
      if (request?.holdsBlocks && request.admissionSerial === row.admissionSerial) {
        this.#landed(request, count);
        for (; at < end; at++) request.tokens.append(tokens[at], this.#coordinator.buffers);
        request.specCandidates = specCandidates?.[i] ?? request.specCandidates;
        if (width > 1 && !row.isPrefill && request.state === requestState.decoding) {
          request.decodeReserveTokens = count;
        }
      }
      at = end;
    }
  }

  /** All that can be wrong with a result, before any of it lands. */
  #checkResult(
    planId: number,
    rows: readonly RowBuffer[],
    tokenCounts: Int32Array,
    tokens: Int32Array,
  ): void {
    if (tokenCounts.length < rows.length) {
      const reason = `plan ${planId} has ${rows.length} rows, results came for ${tokenCounts.length}`;
      refuse("invalidArgument", `Scheduler: ${reason}`);
    }
    let numTokens = 0;
    for (let i = 0; i < rows.length; i++) {
      const { source, isPrefill, completesPrompt, admissionSerial } = rows[i];
      const count = tokenCounts[i];
      if (count < 0) refuseCount(planId, i, count);
      numTokens += count;
      const isLive = source?.holdsBlocks === true && source.admissionSerial === admissionSerial;
      if (isLive && count > 0 && isPrefill && !completesPrompt) this.#refuseToken(source);
    }
    if (numTokens > tokens.length) {
      const reason = `results of plan ${planId} name ${numTokens} tokens, ${tokens.length} came`;
      refuse("invalidArgument", `Scheduler: ${reason}`);
    }
  }

  #extendResult(request: Request, { tokens, specCandidates }: ExtendResult): void {
    const { state } = request;
    if (state === requestState.finished) return;
    if (!request.holdsBlocks) this.#refuseEvent(request, "extendResult");
    this.#landed(request, tokens.length);
    if (state === requestState.remotePrefilling) return;
    for (const token of tokens) request.tokens.append(token, this.#coordinator.buffers);
    if (specCandidates !== undefined && specCandidates.length > 0) request.specCandidates = specCandidates;
  }

  /** One result of the request is in. */
  #landed(request: Request, numTokens: number): void {
    if (request.state === requestState.prefilling && numTokens > 0) this.#refuseToken(request);
    if (request.resultsInFlight <= 0) broken(`request ${request.id} got a result that nobody waits for`);
    request.resultsInFlight--;
    if (request.state === requestState.prefillAwaitingResult && numTokens > 0) {
      this.#book.moveTo(request, requestState.prefillDone);
    }
  }

  #refuseToken(request: Request): never {
    const reason = `request ${request.id} got a token for a chunk that does not complete its prompt`;
    refuse("invalidTransition", `Scheduler: ${reason}`);
  }

  #finish(request: Request, { keptTokens }: Finish): void {
    if (request.state === requestState.finished) return;
    if (this.isTransferInFlight(request)) {
      const reason = `request ${request.id} cannot finish while a peer transfers its blocks`;
      refuse("transferInFlight", `Scheduler: ${reason}`);
    }
    if (!this.canFinish(request)) this.#refuseEvent(request, "finish");
    if (keptTokens !== undefined) {
      demandCount(keptTokens, "keptTokens of a finish");
      this.#cut(request, keptTokens);
    }
    this.#releaser.finish(request);
  }

  /** Drops generated tokens behind a stop, except those that others may have been given already. */
  #cut(request: Request, keptTokens: number): void {
    const { prefixGranularity } = this.#settings;
    const published = request.chain.numKnown * prefixGranularity;
    request.tokens.truncate(Math.max(request.submittedPromptTokens + keptTokens, published));
    request.chain.truncate(Math.floor(request.tokens.size / prefixGranularity));
  }

  #remotePrefillDone(request: Request, { token }: RemotePrefillDone): void {
    demand(token >= 0, "invalidArgument", "Scheduler: a remote prefill must bring a token");
    const { state } = request;
    if (
      state === requestState.prefillDone ||
      state === requestState.decoding ||
      state === requestState.finished
    ) {
      return;
    }
    if (state !== requestState.remotePrefilling) {
      const reason = `request ${request.id} got a remote prefill before destination admission`;
      refuse("invalidTransition", `Scheduler: ${reason}`);
    }
    request.tokens.append(token, this.#coordinator.buffers);
    this.#book.moveTo(request, requestState.prefillDone);
  }

  #transferDone(wasKnown: boolean | undefined): void {
    if (wasKnown === true) this.#coordinator.changeVersion++;
  }

  #admitOnly(request: Request, event: string, ...states: number[]): void {
    if (!states.includes(request.state)) this.#refuseEvent(request, event);
  }

  #refuseEvent(request: Request, event: string): never {
    const reason = `${event} is not admitted for request ${request.id} in state`;
    refuse("invalidTransition", `Scheduler: ${reason} ${requestStateNames[request.state]}`);
  }
}

/** Apart: compiled into a loop, the numbers' texts are made on every turn. */
function refuseCount(planId: number, row: number, count: number): never {
  refuse("invalidArgument", `Scheduler: row ${row} of plan ${planId} has ${count} tokens`);
}

function demandCount(value: number, name: string): void {
  if (!isCount(value)) refuse("invalidArgument", `Scheduler: ${name} must be an int32 of at least 0`);
}
