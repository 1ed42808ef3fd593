/**
 * The scheduler: requests in, execution plans out, events back in. One thread, no clock, no I/O, no
 * randomness: equal calls give equal plans on every rank.
 */
import { demand, refuse } from "../assert";
import {
  canClearCache,
  canClearDeviceCache,
  clearCache,
  clearDeviceCache,
} from "../cache/coordinator/cache-clearing";
import { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import {
  groupAvailableBlocks,
  numActiveLcmBlocks,
  numAvailableLcmBlocks,
} from "../cache/coordinator/capacity-views";
import { maxInt32 } from "../limits";
import { Admissions } from "./admissions";
import { CapacityModel } from "./capacity-model";
import type { RequestSpec, SchedulerConfig } from "./config";
import { isCount } from "./count";
import { EventHandler } from "./event-handler";
import type { SchedulerEvent } from "./events";
import type { HitTokens, IntegrityCheck, SchedulerGauges } from "./gauges";
import { CacheIntegrityCheck } from "./integrity-check";
import type { KvCacheEvent } from "./kv-cache-event";
import { KvCacheEventLog } from "./kv-cache-event-log";
import type { ExecutionPlan, RequestHandle } from "./plan";
import { PlanBuffer, PlanRing } from "./plan-ring";
import { requestState } from "./request";
import { RequestBook } from "./request-book";
import { RequestReleaser } from "./request-releaser";
import { RequestSlots } from "./request-slots";
import { Retraction } from "./retraction";
import { Round } from "./round";
import { Rounds } from "./rounds";
import { resolveSettings, type SchedulerSettings } from "./settings";
import { type StorageKeys, StorageLookups } from "./storage-lookups";

export type { HitTokens, IntegrityCheck, SchedulerGauges, StorageKeys };

export class Scheduler {
  readonly config: SchedulerConfig;
  /** Largest prompt + generation that one request may ask for. */
  readonly maxSingleRequestTokens: number;
  readonly #settings: SchedulerSettings;
  readonly #coordinator: CacheCoordinator;
  readonly #book: RequestBook;
  readonly #slots: RequestSlots;
  readonly #plans: PlanRing;
  readonly #rounds: Rounds;
  readonly #retraction: Retraction;
  readonly #releaser: RequestReleaser;
  readonly #events: EventHandler;
  readonly #round: Round;
  readonly #storage: StorageLookups;
  readonly #kvEvents: KvCacheEventLog | undefined;
  #numStalledRounds = 0;
  #activity = 0;

  /** Throws a GranaryError that names the field when the configuration breaks a rule. */
  constructor(config: SchedulerConfig) {
    const settings = resolveSettings(config);
    this.config = config;
    this.#settings = settings;
    this.maxSingleRequestTokens = new CapacityModel(config).maxSingleRequestTokens(
      settings.numDeviceLcmBlocks,
    );
    this.#kvEvents = settings.enableKvCacheEvents
      ? new KvCacheEventLog(settings.prefixGranularity)
      : undefined;
    this.#coordinator = new CacheCoordinator({
      prefixGranularity: settings.prefixGranularity,
      specs: settings.specs,
      numDeviceLcmBlocks: settings.numDeviceLcmBlocks,
      numHostLcmBlocks: settings.numHostLcmBlocks,
      enableL3Storage: settings.enableL3Storage,
      streamsDeviceToHost: settings.streamsDeviceToHost,
      sink: this.#kvEvents,
    });
    this.#book = new RequestBook(settings.specs.length, settings.maxBatchSize);
    this.#slots = new RequestSlots(settings.maxBatchSize);
    this.#plans = new PlanRing(settings.overlapScheduleDepth, settings.specs.length);
    const admissions = new Admissions(settings, this.#coordinator, this.#book, this.#slots, this.#kvEvents);
    this.#rounds = new Rounds(settings, this.#coordinator, this.#book, admissions);
    this.#releaser = new RequestReleaser(
      settings,
      this.#coordinator,
      this.#book,
      this.#slots,
      admissions.progress,
    );
    this.#retraction = new Retraction(
      settings,
      this.#coordinator,
      this.#book,
      admissions,
      this.#rounds,
      this.#releaser,
    );
    this.#events = new EventHandler(settings, this.#coordinator, this.#book, this.#releaser, this.#plans);
    this.#round = new Round(settings, new PlanBuffer(0));
    this.#storage = new StorageLookups(settings, this.#coordinator, this.#book, this.#slots, this.#rounds);
  }

  /** All or none are queued. Returns their handles in order. */
  submit(specs: readonly RequestSpec[]): readonly RequestHandle[] {
    this.#activity++;
    const ids = specs.length > 1 ? new Set<string>() : undefined;
    for (const spec of specs) {
      this.#checkSpec(spec);
      if (ids?.has(spec.requestId) || this.#book.hasId(spec.requestId))
        refuse("duplicateRequest", `Scheduler: request id ${spec.requestId} is in use`);
      ids?.add(spec.requestId);
    }
    const first = this.#settings.role === "fused" ? requestState.submitted : requestState.bootstrapping;
    const handles: RequestHandle[] = [];
    for (const spec of specs) handles.push(this.#book.add(spec, first).handle);
    return handles;
  }

  /** Decides the next step. It may be empty. */
  nextExecutionPlan(): ExecutionPlan {
    this.#activity++;
    const plan = this.#plans.next();
    for (const op of this.#releaser.startedStores) plan.writeBacks.push(op);
    this.#releaser.startedStores.length = 0;
    this.#book.dropFinished();
    this.#round.start(plan);
    if (this.#book.size > 0) {
      this.#rounds.run(this.#round);
      this.#retraction.run(this.#round);
      if (this.#rounds.spendWhatWasKeptBack(this.#round)) this.#retraction.run(this.#round);
    }
    if (this.#settings.streamsDeviceToHost) {
      const op = this.#coordinator.tier?.startPendingStores(true);
      if (op !== undefined) plan.writeBacks.push(op);
    }
    plan.finish();
    this.#noteStall(plan);
    return plan;
  }

  /** Applies events in order. */
  advance(events: readonly SchedulerEvent[]): void {
    this.#activity++;
    for (const event of events) this.#events.apply(event);
  }

  /** True while work is left that a plan could carry or a result could end. */
  hasUnfinishedRequests(): boolean {
    return this.#book.numUnfinished > 0;
  }

  handleOf(requestId: string): RequestHandle | undefined {
    return this.#book.byId(requestId)?.handle;
  }

  isLive(request: RequestHandle): boolean {
    const found = this.#book.byHandle(request);
    return found !== undefined && found.state !== requestState.finished;
  }

  /** True when a Finish event is admitted now; otherwise the caller aborts. */
  canFinish(request: RequestHandle): boolean {
    const found = this.#book.byHandle(request);
    return found !== undefined && this.#events.canFinish(found);
  }

  /** A peer reads or writes the request's blocks. */
  isTransferInFlight(request: RequestHandle): boolean {
    const found = this.#book.byHandle(request);
    return found !== undefined && this.#events.isTransferInFlight(found);
  }

  /** Requests whose blocks a peer reads or writes. */
  numTransfersInFlight(): number {
    if (this.#settings.role === "fused") return 0;
    return this.#settings.role === "prefill"
      ? this.#book.numHoldingBlocks
      : this.#book.countOf(requestState.remotePrefilling);
  }

  /** Prompt and generated tokens, -1 for an unknown request. */
  tokenCountOf(request: RequestHandle): number {
    const found = this.#book.byHandle(request);
    return found === undefined || found.state === requestState.finished ? -1 : found.tokens.size;
  }

  hitTokensOf(request: RequestHandle): HitTokens | undefined {
    const found = this.#book.byHandle(request);
    if (found === undefined || !found.wasAdmitted) return undefined;
    return { device: found.deviceHitTokens, host: found.hostHitTokens, storage: found.storageHitTokens };
  }

  gauges(): SchedulerGauges {
    const { device, host, groups } = this.#coordinator;
    const count = this.#book.countOf.bind(this.#book);
    const sum = (blocksOf: (group: (typeof groups)[number]) => number) =>
      groups.reduce((total, group) => total + blocksOf(group), 0);
    return {
      waiting: count(requestState.submitted) + count(requestState.retracted),
      prefilling:
        count(requestState.prefilling) +
        count(requestState.remotePrefilling) +
        count(requestState.prefillAwaitingResult) +
        count(requestState.prefillDone),
      decoding: count(requestState.decoding),
      bootstrapping: count(requestState.bootstrapping),
      remotePrefilling: count(requestState.remotePrefilling),
      totalLcmBlocks: device.pool.numLcmBlocks,
      availableLcmBlocks: numAvailableLcmBlocks(this.#coordinator),
      emptyLcmBlocks: device.pool.numEmpty,
      activeLcmBlocks: numActiveLcmBlocks(this.#coordinator),
      cachedBlocks: sum(({ index }) => index.numEntries),
      hostCachedBlocks: sum(({ hostIndex }) => hostIndex?.numEntries ?? 0),
      hostEmptyLcmBlocks: host?.pool.numEmpty ?? 0,
      hostPinnedBlocks: sum(({ hostIndex }) => (hostIndex?.numEntries ?? 0) - (hostIndex?.numIdle ?? 0)),
      retractions: this.#releaser.numRetractions,
      evictions: this.#coordinator.numEvictions,
      stalledRounds: this.#numStalledRounds,
    };
  }

  cacheGroupTotalBlocks(groupId: string): number {
    const group = this.#groupIndex(groupId);
    const config = this.#settings.groups[group];
    return config.totalBlocks ?? this.#settings.numDeviceLcmBlocks * (config.cacheBlocksPerLcmBlock ?? 1) + 1;
  }

  cacheGroupAvailableBlocks(groupId: string): number {
    return groupAvailableBlocks(this.#coordinator, this.#groupIndex(groupId));
  }

  drainKvEvents(): readonly KvCacheEvent[] {
    return this.#kvEvents?.drain(this.#coordinator) ?? [];
  }

  /** Drops the device's cached prefixes. False, with nothing changed, while something still uses them. */
  clearL1Cache(): boolean {
    if (this.#isAnyTransferInFlight()) return false;
    return this.#noteChange(clearDeviceCache(this.#coordinator));
  }

  /** Drops device and Host. */
  clearCache(): boolean {
    if (this.#isAnyTransferInFlight()) return false;
    return this.#noteChange(clearCache(this.#coordinator));
  }

  canClearCache(): boolean {
    return !this.#isAnyTransferInFlight() && canClearCache(this.#coordinator);
  }

  canClearL1Cache(): boolean {
    return !this.#isAnyTransferInFlight() && canClearDeviceCache(this.#coordinator);
  }

  /** 64-digit hex hashes of the prompt's matchable prefix pages. */
  prefixHashesForTokens(tokens: Int32Array, namespaceRoot?: Uint8Array): readonly string[] {
    if (namespaceRoot !== undefined && namespaceRoot.length !== 32)
      refuse("invalidArgument", "Scheduler: a namespaceRoot must have 32 bytes");
    return this.#storage.prefixHashesForTokens(tokens, namespaceRoot);
  }

  /** Hashes of the work that could be admitted now, for a look into storage before planning. */
  waitingPrefixHashes(): readonly string[] {
    return this.#storage.waitingPrefixHashes();
  }

  /** All groups' keys of these pages, group by group. */
  expandPrefixKeys(hashes: readonly string[]): StorageKeys {
    return this.#storage.expandPrefixKeys(hashes);
  }

  registerStorageKeys(keys: StorageKeys): void {
    this.#storage.register(keys);
  }

  unregisterStorageKeys(keys: StorageKeys): void {
    this.#storage.unregister(keys);
  }

  /** Checks all books in slices; see IntegrityCheck. */
  startIntegrityCheck(): IntegrityCheck {
    return new CacheIntegrityCheck(this.#coordinator, this.#book, () => this.#activity);
  }

  #checkSpec({
    requestId,
    tokens,
    maxNewTokens = 0,
    maxCachedPrefixTokens = maxInt32,
    namespaceRoot,
  }: RequestSpec) {
    const bad = "invalidArgument";
    if (tokens.length === 0) refuse(bad, `Scheduler: request ${requestId} has no tokens`);
    if (!isCount(maxNewTokens))
      refuse(bad, `Scheduler: maxNewTokens of request ${requestId} must be an int32 of at least 0`);
    if (!isCount(maxCachedPrefixTokens))
      refuse(bad, `Scheduler: maxCachedPrefixTokens of request ${requestId} must be an int32 of at least 0`);
    if (namespaceRoot !== undefined && namespaceRoot.length !== 32)
      refuse(bad, `Scheduler: namespaceRoot of request ${requestId} must have 32 bytes`);
    const { role, decodeInputTokens } = this.#settings;
    const limit = tokens.length + (role === "prefill" ? 0 : Math.max(maxNewTokens, decodeInputTokens));
    if (limit > maxInt32)
      refuse(bad, `Scheduler: request ${requestId} asks for more than an int32 of tokens`);
    if (limit > this.maxSingleRequestTokens) {
      const capacity = `the cache can carry ${this.maxSingleRequestTokens} of one request`;
      refuse("exceedsCapacity", `Scheduler: request ${requestId} asks for ${limit} tokens, ${capacity}`);
    }
  }

  /**
   * Counts rounds in a row that did nothing although nothing is out that could change it. Changes no plan.
   */
  #noteStall(plan: ExecutionPlan): void {
    const isStalled = plan.isEmpty && this.#book.numUnfinished > 0 && !this.#isAnythingOutstanding();
    this.#numStalledRounds = isStalled ? this.#numStalledRounds + 1 : 0;
  }

  #isAnythingOutstanding(): boolean {
    const { tier } = this.#coordinator;
    if (tier !== undefined && (tier.numLoadsInFlight > 0 || tier.numStoresInFlight > 0)) return true;
    if (this.#book.countOf(requestState.bootstrapping) > 0 || this.#isAnyTransferInFlight()) return true;
    return this.#book.hasResultsOut;
  }

  #isAnyTransferInFlight(): boolean {
    return this.numTransfersInFlight() > 0;
  }

  #noteChange(hasChanged: boolean): boolean {
    if (hasChanged) {
      this.#coordinator.changeVersion++;
      this.#activity++;
    }
    return hasChanged;
  }

  #groupIndex(groupId: string): number {
    const index = this.#settings.groups.findIndex((group) => group.groupId === groupId);
    demand(index >= 0, "unknownGroup", `Scheduler: there is no cache group '${groupId}'`);
    return index;
  }
}
