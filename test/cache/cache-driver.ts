/**
 * Drives a CacheCoordinator in few words for tests: prompts
 * by page, blocks cached by hand, admissions by token counts.
 */
import { CacheCoordinator } from "../../src/cache/coordinator/cache-coordinator";
import { GroupDemand } from "../../src/cache/coordinator/group-demand";
import type { PrefixProbe } from "../../src/cache/coordinator/prefix-probe";
import { CompletedPages } from "../../src/cache/coordinator/request-progress";
import { BlockTable } from "../../src/cache/core/block-table";
import { Int32List } from "../../src/cache/core/int32-list";
import { type BoundaryKind, boundaryKind } from "../../src/cache/prefix/prefix-cache-index";
import { PrefixChain } from "../../src/cache/prefix/prefix-chain";
import { RequestTokens } from "../../src/scheduler/request-tokens";
import { specOf } from "../../src/scheduler/settings";
import { F, M, R, tokens, W } from "../scheduler/driver";

export { F, M, R, W };

type GroupShape = ReturnType<typeof F>;

export interface CacheSetup {
  readonly P?: number;
  readonly pool: number;
  readonly host?: number;
  readonly l3?: boolean;
  readonly streams?: boolean;
  readonly groups: readonly GroupShape[];
}

/** A prompt whose pages are all hashed. */
export interface Prompt {
  readonly chain: PrefixChain;
  readonly tokens: RequestTokens;
}

export interface Publication {
  readonly prompt: Prompt;
  /** Pages that were known before. */
  readonly from?: number;
  readonly to: number;
  readonly kind?: BoundaryKind;
  readonly stateKind?: BoundaryKind;
  readonly records?: readonly number[];
  readonly streams?: boolean;
}

export interface Admission {
  readonly probe?: PrefixProbe;
  readonly prompt?: Prompt;
  readonly publish?: Publication;
  /** Computed tokens; -1 = first admission. */
  readonly c?: number;
  readonly epoch?: number;
  readonly reserve?: number;
}

type DemandOf =
  | number
  | { extent: number; first: number; reserve?: number }
  | { dense: number; reserve: number };

export const { chunk, endpoint, promoted } = boundaryKind;

export class CacheDriver {
  readonly coordinator: CacheCoordinator;
  readonly P: number;
  #nextStart = 1;

  constructor({ P = 4, pool, host = 0, l3 = false, streams = false, groups }: CacheSetup) {
    this.P = P;
    this.coordinator = new CacheCoordinator({
      prefixGranularity: P,
      specs: groups.map((group, i) => specOf({ groupId: `g${i}`, ...group }, i)),
      numDeviceLcmBlocks: pool,
      numHostLcmBlocks: host,
      enableL3Storage: l3,
      streamsDeviceToHost: streams,
      sink: undefined,
    });
  }

  get empty(): number {
    return this.coordinator.device.pool.numEmpty;
  }

  get hostEmpty(): number {
    return this.coordinator.host?.pool.numEmpty ?? 0;
  }

  get numGroups(): number {
    return this.coordinator.groups.length;
  }

  index(group = 0) {
    return this.coordinator.groups[group].index;
  }

  hostIndex(group = 0) {
    const { hostIndex } = this.coordinator.groups[group];
    if (hostIndex === undefined) throw new Error("no Host tier");
    return hostIndex;
  }

  /** A prompt of this many pages, unlike any other. */
  prompt(numPages: number): Prompt {
    const prompt = {
      chain: new PrefixChain(),
      tokens: new RequestTokens(Int32Array.from(tokens(numPages * this.P + 1, this.#nextStart))),
    };
    this.#nextStart += 100_000;
    prompt.chain.extend(numPages, prompt.tokens, this.coordinator.hasher, this.coordinator.buffers);
    return prompt;
  }

  tables(): BlockTable[] {
    return this.coordinator.groups.map(() => new BlockTable());
  }

  /** Caches one block of a prompt's page under its key; nobody but the index owns it, unless it is `held`. */
  cache(
    group: number,
    prompt: Prompt,
    page: number,
    options: {
      kind?: BoundaryKind;
      epoch?: number;
      index?: number;
      offset?: number;
      tier?: "host";
      held?: boolean;
    } = {},
  ): number {
    const { kind = chunk, epoch = this.coordinator.issueEpoch(), offset = 0 } = options;
    const onHost = options.tier === "host";
    const index = onHost ? this.hostIndex(group) : this.index(group);
    const r = this.coordinator.groups[group].geometry.blocksPerPrefixPage;
    const block = index.refs.acquire();
    if (block === 0) throw new Error("no block left to cache");
    const logicalIndex = onHost ? -1 : (options.index ?? page * r + offset);
    index.register(block, prompt.chain.words, page * 8, offset, kind, epoch, logicalIndex);
    if (options.held !== true) index.refs.release(block);
    return block;
  }

  /** Caches these pages of the prompt in one group; every block of each page. */
  cachePages(group: number, prompt: Prompt, pages: readonly number[], tier?: "host"): number[] {
    const r = this.coordinator.groups[group].geometry.blocksPerPrefixPage;
    const epoch = this.coordinator.issueEpoch();
    return pages.flatMap((page) =>
      Array.from({ length: r }, (_, offset) =>
        this.cache(group, prompt, page, { offset, epoch, ...(tier === undefined ? {} : { tier }) }),
      ),
    );
  }

  isCached(group: number, prompt: Prompt, page: number, offset = 0): boolean {
    return this.index(group).find(prompt.chain.words, page * 8, offset) !== 0;
  }

  isOnHost(group: number, prompt: Prompt, page: number): boolean {
    return this.hostIndex(group).find(prompt.chain.words, page * 8, 0) !== 0;
  }

  probe(prompt: Prompt, numPages: number): PrefixProbe {
    return this.coordinator.probePrefix(prompt, numPages);
  }

  /** A group's device match: blocks as 1, holes as 0. */
  shapeOf(probe: PrefixProbe, group: number, tier: "device" | "host" = "device"): number[] {
    const { slots, length } = probe[tier][group];
    return Array.from(slots.subarray(0, length), (block) => Number(block !== 0));
  }

  admit(tables: readonly BlockTable[], demands: DemandOf | readonly DemandOf[], options: Admission = {}) {
    const prompt = options.prompt ?? options.publish?.prompt ?? this.prompt(0);
    const list: readonly DemandOf[] = Array.isArray(demands)
      ? (demands as readonly DemandOf[])
      : this.coordinator.groups.map(() => demands as DemandOf);
    return this.coordinator.admit({
      tables,
      demands: list.map((demand) => toDemand(demand, options.reserve ?? 0)),
      progress: progressOf(options.publish, options.c ?? -1, prompt),
      epoch: options.epoch ?? 0,
      probe: options.probe,
      source: prompt,
    });
  }

  /** Publishes without admitting. */
  publish(tables: readonly BlockTable[], publication: Publication, c: number, epoch: number): void {
    this.coordinator.cacheCompletedBlocks(tables, progressOf(publication, c, publication.prompt), epoch);
  }

  free(tables: readonly BlockTable[]): void {
    this.coordinator.free(tables);
  }

  /** Parent of each slot of a table, 0 for holes. */
  parents(table: BlockTable, group = 0): number[] {
    return Array.from({ length: table.length }, (_, slot) =>
      table.at(slot) === 0 ? 0 : this.coordinator.device.pool.parentOf(group, table.at(slot)),
    );
  }
}

export function blocksOf(table: BlockTable): number[] {
  return Array.from({ length: table.length }, (_, slot) => table.at(slot));
}

function toDemand(demand: DemandOf, reserve: number): GroupDemand {
  if (typeof demand === "number") return new GroupDemand().denseGrowth(demand, reserve);
  if ("dense" in demand) return new GroupDemand().denseGrowth(demand.dense, demand.reserve);
  return new GroupDemand().sparseSuffix(demand.extent, demand.first, demand.reserve ?? 0);
}

function progressOf(publication: Publication | undefined, c: number, prompt: Prompt) {
  const completed = new CompletedPages();
  const stateBoundaries = new Int32List();
  if (publication !== undefined) {
    completed.firstNewPage = publication.from ?? 0;
    completed.numPages = publication.to;
    completed.boundaryKind = publication.kind ?? chunk;
    completed.stateKind = publication.stateKind ?? completed.boundaryKind;
    completed.streamToHost = publication.streams ?? false;
    for (const boundary of publication.records ?? []) stateBoundaries.push(boundary);
  }
  return {
    chain: publication?.prompt.chain ?? prompt.chain,
    completed,
    stateBoundaries,
    numComputedTokens: c,
  };
}
