/**
 * The scheduler's one door to the cache: several attention structures, one
 * shared pool and two tiers behind a request's life of probe, admit, publish and
 * free. Holds nothing about requests; it only moves the clock of access epochs.
 */
import { assert, broken, demand } from "../../assert";
import { CacheGroup, type CacheTier } from "../cache-group";
import type { CacheGroupSpec } from "../cache-group-spec";
import { AcquirePlan } from "../core/acquire-plan";
import { BlockPool } from "../core/block-pool";
import type { BlockTable } from "../core/block-table";
import { Int32BufferPool } from "../core/int32-buffer-pool";
import { LcmCensus } from "../core/lcm-census";
import { boundaryKind, type CacheMutationSink } from "../prefix/prefix-cache-index";
import { PrefixHasher } from "../prefix/prefix-hasher";
import { StorageKeyShadow } from "../tier/storage-key-shadow";
import { TierTransferManager } from "../tier/tier-transfer-manager";
import { type AdmissionRequest, AdmissionResult, type AdmitOutcome } from "./admission";
import { AdmissionPlanner } from "./admission-planner";
import { HostExtension } from "./host-extension";
import { PrefixProbe, PrefixProber, type ProbeSource } from "./prefix-probe";
import { Publisher } from "./publisher";
import type { RequestProgress } from "./request-progress";

export interface CoordinatorOptions {
  readonly prefixGranularity: number;
  readonly specs: readonly CacheGroupSpec[];
  readonly numDeviceLcmBlocks: number;
  /** 0: no Host tier. */
  readonly numHostLcmBlocks: number;
  readonly enableL3Storage: boolean;
  /** Newly cached device blocks go to Host as they are published. */
  readonly streamsDeviceToHost: boolean;
  readonly sink: CacheMutationSink | undefined;
}

export class CacheCoordinator {
  readonly prefixGranularity: number;
  readonly groups: readonly CacheGroup[];
  readonly device: CacheTier;
  readonly host: CacheTier | undefined;
  readonly tier: TierTransferManager | undefined;
  readonly storageKeys: StorageKeyShadow | undefined;
  readonly buffers = new Int32BufferPool();
  readonly hasher: PrefixHasher;
  /** Largest window over the replayable groups: tokens re-fed in front of a hit. */
  readonly replayWindowTokens: number;
  readonly prober: PrefixProber;
  readonly probe: PrefixProbe;
  readonly result: AdmissionResult;
  readonly #planner: AdmissionPlanner;
  readonly #publisher: Publisher;
  readonly #hostExtension: HostExtension | undefined;
  readonly #plans: readonly AcquirePlan[];
  readonly #needs: Int32Array;
  #epochClock = 0;
  #numEvictions = 0;
  /** Moves whenever an admission that failed before could succeed now. */
  changeVersion = 0;

  constructor(options: CoordinatorOptions) {
    const { prefixGranularity, specs } = options;
    assert(prefixGranularity > 0, "the prefix granularity must be positive");
    for (const [i, spec] of specs.entries()) assert(spec.group === i, `group ${spec.group} stands at ${i}`);
    this.prefixGranularity = prefixGranularity;
    this.hasher = new PrefixHasher(prefixGranularity);
    this.device = cacheTier(options.numDeviceLcmBlocks, specs);
    this.host = options.numHostLcmBlocks > 0 ? cacheTier(options.numHostLcmBlocks, specs) : undefined;
    this.groups = specs.map(
      (spec) => new CacheGroup(spec, prefixGranularity, this.device, this.host, this.buffers, options.sink),
    );
    this.replayWindowTokens = Math.max(0, ...specs.map((spec) => (spec.replayable ? spec.windowTokens : 0)));
    if (options.enableL3Storage && this.host !== undefined) {
      const { numLcmBlocks } = this.host.pool;
      const capacity = specs.reduce((sum, spec) => sum + numLcmBlocks * spec.cacheBlocksPerLcmBlock, 0);
      this.storageKeys = new StorageKeyShadow(capacity, specs.length);
    }
    this.prober = new PrefixProber(
      this.groups,
      prefixGranularity,
      this.hasher,
      this.buffers,
      this.storageKeys,
    );
    if (this.host !== undefined) {
      this.tier = new TierTransferManager(this.groups, this.host, this.storageKeys, () => ++this.#epochClock);
      this.#hostExtension = new HostExtension(this.groups, prefixGranularity, this.prober, this.tier);
    }
    this.probe = new PrefixProbe(specs.length);
    this.result = new AdmissionResult(specs.length);
    this.#planner = new AdmissionPlanner(this.groups, this.device);
    this.#publisher = new Publisher(
      this.groups,
      prefixGranularity,
      options.streamsDeviceToHost ? this.tier : undefined,
    );
    this.#plans = specs.map(() => new AcquirePlan());
    this.#needs = new Int32Array(specs.length);
  }

  get numEvictions(): number {
    return this.#numEvictions;
  }

  /** Fills `this.probe` with what both tiers hold of the first `numPages` prefix pages. Changes nothing. */
  probePrefix(source: ProbeSource, numPages: number): PrefixProbe {
    this.prober.probe(source, numPages, this.probe);
    return this.probe;
  }

  /** The same for a prompt whose computed state arrives from a peer: device history only. */
  probeDecodeDevicePrefix(source: ProbeSource, numPages: number): PrefixProbe {
    this.prober.probeDeviceHistory(source, numPages, this.probe);
    return this.probe;
  }

  /**
   * One transaction of a request: claims the hit, publishes what was completed since
   * the last one, reclaims what expired and takes the blocks demanded, evicting as
   * little as needed. Anything but "admitted" left the books as they were.
   */
  admit(request: AdmissionRequest): AdmitOutcome {
    this.result.clear();
    const { tables, demands, probe, progress } = request;
    checkProgress(progress);
    for (let group = 0; group < this.groups.length; group++) this.#planGroup(group, request);
    if (probe !== undefined) this.#pinDeviceHits(probe);
    if (!this.#planner.plan(this.#needs, tables, progress.numComputedTokens)) {
      if (probe !== undefined) this.#unpinDeviceHits(probe);
      return "short";
    }
    if (probe !== undefined && this.#hostExtension?.claim(probe, request.source) === false) {
      this.#unpinDeviceHits(probe);
      return "hostShort";
    }
    assert(request.epoch <= this.#epochClock, "an access epoch from the future");
    const epoch = request.epoch > 0 ? request.epoch : ++this.#epochClock;
    if (!progress.completed.isEmpty) this.changeVersion++;
    this.result.epoch = epoch;
    if (probe !== undefined) this.#claimHits(probe, tables, epoch);
    this.#evictVictims(false);
    for (const group of this.groups) {
      const table = tables[group.spec.group];
      this.#publisher.publishCompleted(group, table, progress, epoch);
      if (progress.numComputedTokens >= 0) {
        const numExpired = group.geometry.expiredBlocksAt(progress.numComputedTokens);
        if (group.allocator.reclaimExpired(table, numExpired)) this.changeVersion++;
      }
    }
    this.#evictVictims(true);
    for (const group of this.groups) {
      const id = group.spec.group;
      if (probe !== undefined) {
        group.allocator.appendHostExtension(tables[id], probe.host[id].slots, probe.host[id].length);
      }
      const isAcquired = group.allocator.acquire(tables[id], this.#plans[id], this.result.fresh[id]);
      if (!isAcquired) broken(`group ${id} has no room for what its admission was promised`);
    }
    assert(demands.length === this.groups.length, "a demand for every group");
    if (probe !== undefined && probe.hostTokens > probe.deviceTokens) this.#startLoads(request, probe, epoch);
    return "admitted";
  }

  /** Publishes without admitting: at finish, at retraction, and when a peer completed a prompt. */
  cacheCompletedBlocks(tables: readonly BlockTable[], progress: RequestProgress, epoch: number): void {
    demand(progress.completed.numPages > 0, "nothingCompleted", "a publication needs completed pages");
    checkProgress(progress);
    this.changeVersion++;
    for (const group of this.groups) {
      this.#publisher.publishCompleted(group, tables[group.spec.group], progress, epoch);
    }
  }

  /** Publishes pages [firstPage, endPage) of every group as they stand in the tables. */
  cacheFullBlocks(
    tables: readonly BlockTable[],
    source: ProbeSource,
    firstPage: number,
    endPage: number,
    epoch: number,
  ): void {
    this.#publisher.publishRange(tables, source.chain, firstPage, endPage, boundaryKind.chunk, epoch);
  }

  /** Lets go of a request's tables, last slot first, group by group. */
  free(tables: readonly BlockTable[]): void {
    this.changeVersion++;
    for (const group of this.groups) group.allocator.free(tables[group.spec.group]);
  }

  /**
   * Drops what only the device cache holds, where blocks share parents: a request that nothing else stands in
   * the way of can still lack room when the blocks it reuses lie scattered over parents that it cannot fill.
   */
  dropScattered(): void {
    if (this.groups.every((group) => group.spec.cacheBlocksPerLcmBlock === 1)) return;
    this.changeVersion++;
    for (const { index } of this.groups) this.#numEvictions += index.evictIdle();
  }

  issueEpoch(): number {
    return ++this.#epochClock;
  }

  #planGroup(id: number, request: AdmissionRequest): void {
    const { probe } = request;
    const group = this.groups[id];
    const demand = request.demands[id];
    let claimed = 0;
    let fromHost = 0;
    if (probe !== undefined) {
      claimed = probe.device[id].length + probe.host[id].length;
      fromHost = probe.host[id].countHits();
      const hit = probe.hitTokens;
      if (group.spec.replayable && hit > 0 && demand.firstBlock < 0) {
        const begin = hit - Math.min(this.replayWindowTokens, hit);
        const firstBlock = Math.floor(begin / group.geometry.blockGranularity);
        demand.sparseSuffix(hit + demand.tokens, firstBlock, demand.reserveTokens);
      }
    }
    group.geometry.planAcquire(request.tables[id], claimed, demand, this.#plans[id]);
    this.#needs[id] = this.#plans[id].numBlocks + fromHost;
  }

  /** Owns the hits while the plan is made, so that they cannot be chosen as victims. */
  #pinDeviceHits(probe: PrefixProbe): void {
    for (const group of this.groups) {
      const { slots, length } = probe.device[group.spec.group];
      const { refs } = group.allocator;
      for (let i = 0; i < length; i++) if (slots[i] !== 0) refs.retain(slots[i]);
    }
  }

  /** Deepest first, as tables release theirs, so that the eviction order stays sorted. */
  #unpinDeviceHits(probe: PrefixProbe): void {
    for (const group of this.groups) {
      const { slots, length } = probe.device[group.spec.group];
      const { refs } = group.allocator;
      for (let i = length - 1; i >= 0; i--) if (slots[i] !== 0) refs.release(slots[i]);
    }
  }

  #claimHits(probe: PrefixProbe, tables: readonly BlockTable[], epoch: number): void {
    this.result.promotionBoundary = probe.promotionBoundary;
    this.result.deviceTokens = probe.deviceTokens;
    this.result.hostTokens = probe.hostTokens;
    for (const group of this.groups) {
      const { slots, length } = probe.device[group.spec.group];
      group.index.markMatchAcquired(slots, length, epoch);
      if (length > 0) group.allocator.claim(tables[group.spec.group], slots, length);
    }
    this.#hostExtension?.markAcquired(epoch);
  }

  /**
   * Evicts the plan's victims: first those that are the
   * index's alone, later those that the table has let go of.
   */
  #evictVictims(isDeferred: boolean): void {
    const { items, length } = this.#planner.victims;
    for (let i = 0; i < length; i += 2) {
      const block = items[i + 1];
      if (block === 0) continue;
      const { index, allocator } = this.groups[items[i]];
      if (index.isIdle(block)) {
        index.evict(block);
        items[i + 1] = 0;
        this.#numEvictions++;
        this.changeVersion++;
      } else if (isDeferred && allocator.refs.ownersOf(block) !== 0)
        broken(`victim ${block} of group ${items[i]} is still in use`);
    }
  }

  #startLoads(request: AdmissionRequest, probe: PrefixProbe, epoch: number): void {
    assert(this.#hostExtension !== undefined && this.tier !== undefined, "a Host hit without a Host tier");
    const { tables, source } = request;
    const storagePages = this.#hostExtension.storagePages();
    const transfers = this.#hostExtension.takeTransfers(tables, storagePages);
    this.result.storageTokens = storagePages.size * this.prefixGranularity;
    if (transfers.length > 0) this.result.loadBack = this.tier.startLoads(transfers, epoch);
    const first = probe.deviceTokens / this.prefixGranularity;
    const end = probe.hostTokens / this.prefixGranularity;
    for (let page = first; page < end; page++) {
      if (!storagePages.has(page)) this.cacheFullBlocks(tables, source, page, page + 1, epoch);
    }
  }
}

function cacheTier(numLcmBlocks: number, specs: readonly CacheGroupSpec[]): CacheTier {
  const pool = new BlockPool(
    numLcmBlocks,
    specs.map((spec) => spec.cacheBlocksPerLcmBlock),
  );
  return { pool, census: new LcmCensus(pool) };
}

/** Completed pages must be a range and come with the frontier that completed them. */
function checkProgress({ completed, numComputedTokens }: RequestProgress): void {
  if (completed.numPages === 0) return;
  demand(!completed.isEmpty, "noNewPages", "completed pages must include a new one");
  demand(numComputedTokens >= 0, "noFrontier", "completed pages need the number of computed tokens");
}
