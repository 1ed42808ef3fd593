/**
 * Puts one request's next piece of work into a plan, or leaves everything as it was: a first chunk, a later
 * chunk, a decode step, a prompt for a peer. Which request is asked for what is the rounds' affair.
 */
import { demand } from "../assert";
import type { AdmissionRequest, AdmitOutcome } from "../cache/coordinator/admission";
import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import type { GroupDemand } from "../cache/coordinator/group-demand";
import type { PrefixProbe } from "../cache/coordinator/prefix-probe";
import { prefillChunk, replayTokens } from "./chunk";
import { ChunkDemands, lastStateBoundary } from "./demands";
import { admissionHeadroom } from "./headroom";
import type { KvCacheEventLog } from "./kv-cache-event-log";
import type { PlanBuffer } from "./plan-ring";
import { type Request, type RequestState, requestState } from "./request";
import type { RequestBook } from "./request-book";
import { RequestProgressKeeper } from "./request-progress-keeper";
import type { RequestSlots } from "./request-slots";
import type { SchedulerSettings } from "./settings";

/**
 * short: capacity was missing. skipped: no slot, or the budget left no whole chunk; not a matter of capacity.
 */
export type ScheduleOutcome = "scheduled" | "short" | "skipped";

export class Admissions {
  readonly progress: RequestProgressKeeper;
  readonly #settings: SchedulerSettings;
  readonly #coordinator: CacheCoordinator;
  readonly #book: RequestBook;
  readonly #slots: RequestSlots;
  readonly #demands: ChunkDemands;

  constructor(
    settings: SchedulerSettings,
    coordinator: CacheCoordinator,
    book: RequestBook,
    slots: RequestSlots,
    kvEvents: KvCacheEventLog | undefined,
  ) {
    this.#settings = settings;
    this.#coordinator = coordinator;
    this.#book = book;
    this.#slots = slots;
    this.#demands = new ChunkDemands(settings);
    this.progress = new RequestProgressKeeper(settings, coordinator, kvEvents);
  }

  get hasFreeSlot(): boolean {
    return this.#slots.numFree > 0;
  }

  /**
   * Admits a request with as much of its prompt as the
   * budget holds. `ignoreHit`: compute even what is cached.
   */
  firstChunk(request: Request, budget: number, plan: PlanBuffer, ignoreHit = false): ScheduleOutcome {
    if (this.#slots.numFree === 0) return "skipped";
    const source = request;
    const probe = this.#coordinator.probePrefix(source, ignoreHit ? 0 : this.#numProbePages(request));
    let size = 0;
    let outcome: AdmitOutcome = "hostShort";
    while (outcome === "hostShort") {
      const unscheduled = request.prefillTokens - probe.hitTokens;
      size = this.#chunk(probe.hitTokens, true, unscheduled, budget, probe.promotionBoundary);
      if (size === 0) return "skipped";
      const end = probe.hitTokens + size;
      const headroom = this.#headroom(request, unscheduled - size);
      const completes = end === request.prefillTokens;
      outcome = this.#admit(
        request,
        this.#demands.forChunk(probe.hitTokens, end, completes, headroom),
        0,
        probe,
      );
    }
    if (outcome === "short") return "short";
    const begin = probe.hitTokens;
    this.#open(request, begin, begin + size);
    this.progress.recordLocalChunk(request, begin, begin + size);
    this.#book.moveTo(request, this.#stateAfterChunk(request));
    const row = this.#pushChunk(request, plan, replayTokens(begin, this.#settings.replayWindowTokens));
    const { deviceTokens, hostTokens, storageTokens } = this.#coordinator.result;
    row.isFirstChunk = true;
    row.deviceHitTokens = deviceTokens;
    row.hostHitTokens = hostTokens - deviceTokens - storageTokens;
    row.storageHitTokens = storageTokens;
    return "scheduled";
  }

  /** The next chunk of a request that is being prefilled. */
  nextChunk(request: Request, budget: number, plan: PlanBuffer): ScheduleOutcome {
    const begin = request.windowEnd;
    this.progress.prepare(request, begin, request.prefillTokens, this.#settings.streamsDeviceToHost);
    const unscheduled = request.prefillTokens - begin;
    const promotion = begin >= request.promotionBoundary ? 0 : request.promotionBoundary;
    const size = this.#chunk(begin, false, unscheduled, budget, promotion);
    if (size === 0) return "skipped";
    const end = begin + size;
    const demands = this.#demands.forChunk(begin, end, end === request.prefillTokens, 0);
    if (this.#admit(request, demands, request.accessEpoch, undefined) !== "admitted") return "short";
    this.progress.settle(request, begin);
    request.windowBegin = begin;
    request.windowEnd = end;
    this.progress.recordLocalChunk(request, begin, end);
    this.#book.moveTo(request, this.#stateAfterChunk(request));
    this.#pushChunk(request, plan, 0);
    return "scheduled";
  }

  /** One decode step; in most rounds it merely uses up room that the tables have. */
  decode(request: Request, plan: PlanBuffer): ScheduleOutcome {
    const isFirst = request.state === requestState.prefillDone;
    const frontier = request.numComputedTokens;
    if (!this.#consumeRoom(request, frontier)) {
      const streams = isFirst && this.#settings.streamsDeviceToHost;
      this.progress.prepare(request, frontier, request.prefillTokens, streams);
      const demands = this.#demands.forDecode(request.decodeReserveTokens);
      if (this.#admit(request, demands, request.accessEpoch, undefined) !== "admitted") return "short";
      this.progress.settle(request, frontier);
      this.#takeFresh(plan);
    }
    const isHandOver = this.#settings.role === "prefill";
    const row = (isHandOver ? plan.remoteDecode : plan.forward).addRow(request, false);
    row.isFirstDecode = isFirst;
    row.begin = isFirst ? frontier : frontier + request.resultsInFlight;
    row.size = this.#settings.decodeInputTokens;
    row.inputLength = row.size;
    if (isHandOver || (isFirst && this.#settings.role === "decode")) {
      row.decodeInputId = request.tokens.at(request.tokens.size - 1);
    }
    row.specCandidates = request.specCandidates;
    if (!isHandOver) request.resultsInFlight++;
    request.decodeReserveTokens = this.#settings.decodeInputTokens;
    if (isFirst) this.#book.moveTo(request, requestState.decoding);
    return "scheduled";
  }

  /** Decode role: destinations for a whole prompt that a peer computes. */
  remotePrompt(request: Request, plan: PlanBuffer, ignoreHit = false): ScheduleOutcome {
    if (this.#slots.numFree === 0) return "skipped";
    const numPages = ignoreHit ? 0 : this.#numProbePages(request);
    const isRecovery = request.state === requestState.retracted;
    const probe = isRecovery
      ? this.#coordinator.probePrefix(request, numPages)
      : this.#coordinator.probeDecodeDevicePrefix(request, numPages);
    const end = request.prefillTokens;
    let outcome: AdmitOutcome = "hostShort";
    while (outcome === "hostShort") {
      const demands = this.#demands.forRemote(probe.hitTokens, end, this.#headroom(request, 0));
      outcome = this.#admit(request, demands, 0, probe);
    }
    if (outcome === "short") return "short";
    this.#open(request, probe.hitTokens, end);
    this.progress.recordRemotePrompt(request);
    this.#book.moveTo(request, requestState.remotePrefilling);
    const row = plan.remotePrefill.addRow(request, true);
    this.#fillChunk(row, request, 0);
    row.isFirstChunk = true;
    row.deviceHitTokens = this.#coordinator.result.deviceTokens;
    this.#takeFresh(plan);
    return "scheduled";
  }

  #chunk(begin: number, isFirst: boolean, unscheduled: number, budget: number, promotion: number): number {
    return prefillChunk(this.#settings, begin, isFirst, unscheduled, budget, promotion);
  }

  /** Prefix pages that an admission may take from the cache. */
  #numProbePages(request: Request): number {
    const isRetracted = request.state === requestState.retracted;
    if (this.#settings.disablePrefixCache && !isRetracted) return 0;
    const computed = request.prefillTokens - Math.max(this.#settings.prefixReplayTokens, 1);
    const bound = isRetracted
      ? Math.max(request.maxCachedPrefixTokens, request.landedTokens)
      : request.maxCachedPrefixTokens;
    return Math.floor(Math.max(0, Math.min(computed, bound)) / this.#settings.prefixGranularity);
  }

  /**
   * Tokens beyond the chunk that a first admission pays for: the rest of the prompt and of the generation.
   */
  #headroom(request: Request, promptLeft: number): number {
    if (this.#settings.role === "prefill") return 0;
    const headroom = admissionHeadroom(request);
    return headroom > 0 ? promptLeft + headroom : 0;
  }

  #admit(
    request: Request,
    demands: readonly GroupDemand[],
    epoch: number,
    probe: PrefixProbe | undefined,
  ): AdmitOutcome {
    this.#admission.tables = request.tables;
    this.#admission.demands = demands;
    this.#admission.progress = request;
    this.#admission.epoch = epoch;
    this.#admission.probe = probe;
    this.#admission.source = request;
    return this.#coordinator.admit(this.#admission as AdmissionRequest);
  }

  /** Filled anew for every admission, so that none allocates. */
  readonly #admission: { -readonly [Key in keyof AdmissionRequest]?: AdmissionRequest[Key] } = {};

  /** The bundle of resources comes to life: a slot, an epoch, a hit. */
  #open(request: Request, hitTokens: number, windowEnd: number): void {
    const { result } = this.#coordinator;
    request.slot = this.#slots.take();
    demand(request.slot > 0, "noSlot", "Scheduler: no request slot is free");
    request.admissionSerial++;
    request.accessEpoch = result.epoch;
    request.promotionBoundary = result.promotionBoundary;
    this.progress.open(request, hitTokens);
    this.progress.hashAhead(request, windowEnd);
    request.windowBegin = hitTokens;
    request.windowEnd = windowEnd;
    request.resultsInFlight = 0;
    request.decodeReserveTokens = this.#settings.decodeInputTokens;
    if (request.wasAdmitted) return;
    request.wasAdmitted = true;
    request.deviceHitTokens = result.deviceTokens;
    request.hostHitTokens = result.hostTokens - result.deviceTokens - result.storageTokens;
    request.storageHitTokens = result.storageTokens;
  }

  #stateAfterChunk(request: Request): RequestState {
    if (request.windowEnd < request.prefillTokens) return requestState.prefilling;
    return this.#settings.role === "prefill" ? requestState.prefillAwaitingResult : requestState.prefillDone;
  }

  #pushChunk(request: Request, plan: PlanBuffer, replay: number) {
    const row = plan.forward.addRow(request, true);
    this.#fillChunk(row, request, replay);
    request.resultsInFlight++;
    this.#takeFresh(plan);
    return row;
  }

  #fillChunk(row: ReturnType<PlanBuffer["forward"]["addRow"]>, request: Request, replay: number): void {
    const { windowBegin: begin, windowEnd: end } = request;
    row.begin = begin;
    row.size = end - begin;
    row.replay = replay;
    row.inputLength = row.size + replay;
    row.completesPrompt = end === request.prefillTokens;
    const boundary = lastStateBoundary(end, row.completesPrompt, this.#settings.prefixGranularity);
    if (this.#settings.hasStateGroup && boundary > begin && boundary < end)
      row.internalStateBoundary = boundary;
  }

  /** Fresh blocks must be cleared, and an admission's load belongs to the plan that needs it. */
  #takeFresh(plan: PlanBuffer): void {
    const { fresh, loadBack } = this.#coordinator.result;
    for (let group = 0; group < fresh.length; group++) {
      const { items, length } = fresh[group];
      for (let i = 0; i < length; i++) plan.blocksToZero[group].push(items[i]);
    }
    if (loadBack !== undefined) plan.loadBacks.push(loadBack);
  }

  /**
   * Uses up room when that is all the step needs: no page
   * completed, nothing to reclaim, enough room everywhere.
   */
  #consumeRoom(request: Request, frontier: number): boolean {
    if (Math.floor(frontier / this.#settings.prefixGranularity) > request.chain.numKnown) return false;
    const { groups } = this.#coordinator;
    for (let group = 0; group < groups.length; group++) {
      const table = request.tables[group];
      const tokens = this.#demands.decodeTokens(group, request.decodeReserveTokens);
      if (table.availableTokens < tokens || groups[group].geometry.hasReclaimable(table, frontier))
        return false;
    }
    for (let group = 0; group < groups.length; group++) {
      request.tables[group].availableTokens -= this.#demands.decodeTokens(group, request.decodeReserveTokens);
    }
    return true;
  }
}
