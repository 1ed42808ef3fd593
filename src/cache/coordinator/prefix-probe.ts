/**
 * Finds how much of a prompt each tier can supply, all groups agreeing on one boundary. Read-only: nothing is
 * pinned and no epoch moves. Hashes are computed as far as the matching looks, not further.
 */
import type { CacheGroup } from "../cache-group";
import type { BlockId } from "../core/ids";
import type { Int32BufferPool } from "../core/int32-buffer-pool";
import type { PrefixCacheIndex } from "../prefix/prefix-cache-index";
import type { PrefixChain } from "../prefix/prefix-chain";
import type { PrefixHasher, TokenSource } from "../prefix/prefix-hasher";
import { type BlockLookup, inStorage, SlotMatch } from "../prefix/prefix-matcher";
import type { StorageKeyShadow } from "../tier/storage-key-shadow";

/** A prompt's hashes, known ones and those that can still be computed. */
export interface ProbeSource {
  readonly chain: PrefixChain;
  readonly tokens: TokenSource;
}

/** The outcome of a probe; reused by the next one. */
export class PrefixProbe {
  /** Tokens the device holds for every group; a multiple of the prefix granularity. */
  deviceTokens = 0;
  /** The same with Host and storage behind it; at least deviceTokens. */
  hostTokens = 0;
  /** Tokens that the prefix-closed groups alone could supply, the better tier. */
  closedTokens = 0;
  /** A group's device blocks from slot 0 on. */
  readonly device: readonly SlotMatch[];
  /** A group's Host blocks from the device boundary on. */
  readonly host: readonly SlotMatch[];

  constructor(numGroups: number) {
    this.device = Array.from({ length: numGroups }, () => new SlotMatch());
    this.host = Array.from({ length: numGroups }, () => new SlotMatch());
  }

  clear(): void {
    this.deviceTokens = 0;
    this.hostTokens = 0;
    this.closedTokens = 0;
    for (const match of this.device) match.length = 0;
    for (const match of this.host) match.length = 0;
  }

  get hitTokens(): number {
    return this.hostTokens;
  }

  /** Where a chunk must end so that open groups can catch up with the closed ones; 0 = nowhere. */
  get promotionBoundary(): number {
    return this.closedTokens > this.hostTokens ? this.closedTokens : 0;
  }
}

class ChainLookup implements BlockLookup {
  readonly #group: CacheGroup;
  readonly #index: PrefixCacheIndex;
  readonly #shadow: StorageKeyShadow | undefined;
  readonly #hasher: PrefixHasher;
  readonly #buffers: Int32BufferPool;
  source: ProbeSource | undefined;

  constructor(
    group: CacheGroup,
    index: PrefixCacheIndex,
    shadow: StorageKeyShadow | undefined,
    hasher: PrefixHasher,
    buffers: Int32BufferPool,
  ) {
    this.#group = group;
    this.#index = index;
    this.#shadow = shadow;
    this.#hasher = hasher;
    this.#buffers = buffers;
  }

  blockAt(slot: number): BlockId {
    const { chain, tokens } = this.source as ProbeSource;
    const blocksPerPage = this.#group.geometry.blocksPerPrefixPage;
    const page = blocksPerPage === 1 ? slot : Math.floor(slot / blocksPerPage);
    if (page >= chain.numComputed) chain.extend(page + 1, tokens, this.#hasher, this.#buffers);
    const offset = slot - page * blocksPerPage;
    const block = this.#index.find(chain.words, page * 8, offset);
    if (block !== 0 || this.#shadow === undefined) return block;
    return this.#shadow.has(this.#group.spec.group, chain.words, page * 8, offset) ? inStorage : 0;
  }
}

export class PrefixProber {
  readonly #prefixGranularity: number;
  /** Prefix-closed groups first: the others match only below the boundary they settled. */
  readonly #matchOrder: readonly CacheGroup[];
  readonly #device: readonly ChainLookup[];
  readonly #host: readonly ChainLookup[] | undefined;
  readonly #extents: Int32Array;
  #closedTokens = 0;

  constructor(
    groups: readonly CacheGroup[],
    prefixGranularity: number,
    hasher: PrefixHasher,
    buffers: Int32BufferPool,
    shadow: StorageKeyShadow | undefined,
  ) {
    this.#prefixGranularity = prefixGranularity;
    const matched = groups.filter((group) => group.isMatched);
    this.#matchOrder = [
      ...matched.filter((group) => group.matcher.isPrefixClosed),
      ...matched.filter((group) => !group.matcher.isPrefixClosed),
    ];
    this.#extents = new Int32Array(groups.length);
    this.#device = groups.map((group) => new ChainLookup(group, group.index, undefined, hasher, buffers));
    this.#host = groups[0]?.hostIndex
      ? groups.map(
          (group) => new ChainLookup(group, group.hostIndex as PrefixCacheIndex, shadow, hasher, buffers),
        )
      : undefined;
  }

  /** Probes both tiers for the first `numPages` prefix pages. */
  probe(source: ProbeSource, numPages: number, probe: PrefixProbe): void {
    probe.clear();
    if (numPages <= 0) return;
    const bound = numPages * this.#prefixGranularity;
    this.#attach(this.#device, source);
    probe.deviceTokens = this.#converge(this.#matchOrder, this.#device, 0, bound, probe.device);
    probe.hostTokens = probe.deviceTokens;
    probe.closedTokens = this.#closedTokens;
    if (this.#host === undefined) return;
    this.#attach(this.#host, source);
    probe.hostTokens = this.#converge(this.#matchOrder, this.#host, probe.deviceTokens, bound, probe.host);
    probe.closedTokens = Math.max(probe.closedTokens, this.#closedTokens);
  }

  /**
   * Probes the device for a prompt whose state snapshot will arrive from elsewhere: state groups get holes.
   */
  probeDeviceHistory(source: ProbeSource, numPages: number, probe: PrefixProbe): void {
    probe.clear();
    if (numPages <= 0) return;
    this.#attach(this.#device, source);
    const order = this.#matchOrder.filter((group) => group.spec.kind !== "state");
    const bound = numPages * this.#prefixGranularity;
    probe.deviceTokens = this.#converge(order, this.#device, 0, bound, probe.device);
    probe.hostTokens = probe.deviceTokens;
    probe.closedTokens = this.#closedTokens;
    for (const group of this.#matchOrder) {
      if (group.spec.kind !== "state") continue;
      const match = probe.device[group.spec.group];
      match.reset(probe.deviceTokens / group.geometry.blockGranularity);
      match.slots.fill(0, 0, match.length);
    }
  }

  /** Lowers a probe's Host part to a boundary at or below `bound` that all groups support. */
  shortenHost(source: ProbeSource, bound: number, probe: PrefixProbe): void {
    const lookups = this.#host;
    if (lookups === undefined) return;
    this.#attach(lookups, source);
    probe.hostTokens = this.#converge(this.#matchOrder, lookups, probe.deviceTokens, bound, probe.host);
  }

  #attach(lookups: readonly ChainLookup[], source: ProbeSource): void {
    for (const lookup of lookups) lookup.source = source;
  }

  /**
   * Settles on the highest boundary in (floor, bound] that
   * every group of `order` can resume from, else the floor.
   */
  #converge(
    order: readonly CacheGroup[],
    lookups: readonly ChainLookup[],
    floor: number,
    bound: number,
    matches: readonly SlotMatch[],
  ): number {
    this.#closedTokens = 0;
    if (order.length === 0) return floor;
    let common = bound;
    for (const group of order) {
      common = this.#probeGroup(group, lookups, floor, common, matches);
      if (group.matcher.isPrefixClosed) this.#closedTokens = common;
    }
    for (let settled = false; !settled; ) {
      settled = true;
      for (const group of order) {
        if (group.matcher.isPrefixClosed || this.#extents[group.spec.group] <= common) continue;
        common = this.#probeGroup(group, lookups, floor, common, matches);
        settled = false;
      }
    }
    for (const group of order) {
      matches[group.spec.group].length = (common - floor) / group.geometry.blockGranularity;
    }
    return common;
  }

  /** Matches one group below `bound`, notes how far it reaches and returns the boundary it allows. */
  #probeGroup(
    group: CacheGroup,
    lookups: readonly ChainLookup[],
    floor: number,
    bound: number,
    matches: readonly SlotMatch[],
  ): number {
    const id = group.spec.group;
    const granularity = group.geometry.blockGranularity;
    group.matcher.probe(lookups[id], floor / granularity, bound / granularity, matches[id]);
    const extent = floor + matches[id].length * granularity;
    this.#extents[id] = extent;
    return Math.min(bound, extent - (extent % this.#prefixGranularity));
  }
}
