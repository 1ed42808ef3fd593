/**
 * One attention structure's share of the cache: its spec, its placement and its reuse index in each tier, and
 * how it matches. The only place where allocation and prefix matching meet.
 */
import { assert } from "../assert";
import { GroupAllocator } from "./allocator/group-allocator";
import type { CacheGroupSpec } from "./cache-group-spec";
import { GroupGeometry } from "./coordinator/group-geometry";
import type { BlockPool } from "./core/block-pool";
import { CacheBlockRefs } from "./core/cache-block-refs";
import type { Int32BufferPool } from "./core/int32-buffer-pool";
import type { LcmCensus } from "./core/lcm-census";
import { type CacheMutationSink, PrefixCacheIndex } from "./prefix/prefix-cache-index";
import { FullMatcher, type PrefixMatcher, SlidingMatcher } from "./prefix/prefix-matcher";

/** A pool and the census of its parents. */
export interface CacheTier {
  readonly pool: BlockPool;
  readonly census: LcmCensus;
}

export class CacheGroup {
  readonly spec: CacheGroupSpec;
  readonly geometry: GroupGeometry;
  readonly matcher: PrefixMatcher;
  readonly allocator: GroupAllocator;
  readonly index: PrefixCacheIndex;
  /** Undefined without a Host tier. */
  readonly hostRefs: CacheBlockRefs | undefined;
  readonly hostIndex: PrefixCacheIndex | undefined;

  constructor(
    spec: CacheGroupSpec,
    prefixGranularity: number,
    device: CacheTier,
    host: CacheTier | undefined,
    buffers: Int32BufferPool,
    sink?: CacheMutationSink,
  ) {
    assert(
      spec.cacheBlocksPerLcmBlock === device.pool.packingOf(spec.group),
      `group ${spec.group} and its pool disagree about cacheBlocksPerLcmBlock`,
    );
    assert(!spec.replayable || spec.kind === "slidingWindow", "only a sliding group can be replayable");
    this.spec = spec;
    this.geometry = new GroupGeometry(spec, prefixGranularity);
    this.matcher =
      spec.kind === "full"
        ? new FullMatcher()
        : new SlidingMatcher(spec.kind === "state" ? 2 : spec.windowTokens, spec.blockGranularity);
    const refs = new CacheBlockRefs(device.pool, spec.group, device.census);
    this.allocator = new GroupAllocator(refs, spec.shardCount, buffers);
    this.index = new PrefixCacheIndex(refs, this.matcher.isPrefixClosed ? "prefixClosed" : "open", sink);
    if (host === undefined) return;
    host.pool.registerShards(spec.group, spec.shardCount);
    this.hostRefs = new CacheBlockRefs(host.pool, spec.group, host.census);
    this.hostIndex = new PrefixCacheIndex(this.hostRefs, "host");
  }

  /** Takes part in matching and publication. */
  get isMatched(): boolean {
    return !this.spec.replayable;
  }
}
