/**
 * Turns the comings and goings of cache entries into events about whole prefix boundaries. Mutations only
 * mark a boundary; what is told is the difference between what is resident now and what was told before.
 */
import { assert } from "../assert";
import { deviceBoundaryResidency } from "../cache/coordinator/boundary-residency";
import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import type { CacheMutationSink } from "../cache/prefix/prefix-cache-index";
import { digestToHex } from "../cache/prefix/prefix-hasher";
import { eventHash } from "./fnv";
import type { KvCacheEvent } from "./kv-cache-event";
import type { Request } from "./request";

/** What an event about a boundary says. */
interface Boundary {
  readonly blockHash: bigint;
  readonly parentBlockHash: bigint | undefined;
  readonly tokenIds: readonly number[];
  readonly page: number;
  readonly digest: Int32Array;
  isPublished: boolean;
}

export class KvCacheEventLog implements CacheMutationSink {
  readonly #prefixGranularity: number;
  readonly #boundaries = new Map<string, Boundary>();
  readonly #marked = new Set<string>();
  /** Event hashes of the pages that a request has described. */
  readonly #chains = new WeakMap<Request, bigint[]>();
  readonly #described = new WeakMap<Request, number>();

  constructor(prefixGranularity: number) {
    this.#prefixGranularity = prefixGranularity;
  }

  entryAdded(_group: number, digests: Int32Array, at: number): void {
    this.#marked.add(digestToHex(digests, at));
  }

  entryRemoved(_group: number, digests: Int32Array, at: number): void {
    this.#marked.add(digestToHex(digests, at));
  }

  /**
   * Notes the tokens behind the pages that a request has completed, for events to come. An admission starts
   * over: what was noted for an earlier one may have been forgotten with its pages.
   */
  describe(request: Request, isNewAdmission: boolean): void {
    const { words, root, numKnown } = request.chain;
    const firstPage = isNewAdmission ? 0 : (this.#described.get(request) ?? 0);
    this.#described.set(request, numKnown);
    const chain = this.#chains.get(request) ?? [];
    this.#chains.set(request, chain);
    const tokens = new Int32Array(this.#prefixGranularity);
    for (let page = firstPage; page < numKnown; page++) {
      request.tokens.copyTokens(page * this.#prefixGranularity, tokens.length, tokens, 0);
      const parentBlockHash =
        page > 0 ? chain[page - 1] : root === undefined ? undefined : leadingWords(root);
      const blockHash = eventHash(parentBlockHash, tokens);
      chain[page] = blockHash;
      const key = digestToHex(words, page * 8);
      if (this.#boundaries.has(key)) continue;
      this.#boundaries.set(key, {
        blockHash,
        parentBlockHash,
        tokenIds: request.hasNamespace ? [] : Array.from(tokens),
        page,
        digest: words.slice(page * 8, page * 8 + 8),
        isPublished: false,
      });
    }
  }

  /**
   * What changed since the last call: removals from the
   * deepest page up, then additions from the shallowest down.
   */
  drain(coordinator: CacheCoordinator): KvCacheEvent[] {
    const removed: Boundary[] = [];
    const stored: Boundary[] = [];
    const undecided: string[] = [];
    const isLoading = (coordinator.tier?.numLoadsInFlight ?? 0) > 0;
    for (const key of this.#marked) {
      const boundary = this.#boundaries.get(key);
      assert(boundary !== undefined, `cache boundary ${key} was never described`);
      const residency = deviceBoundaryResidency(coordinator, boundary.digest, 0);
      if (residency === "complete" && !boundary.isPublished) stored.push(boundary);
      if (residency !== "complete" && boundary.isPublished) removed.push(boundary);
      boundary.isPublished = residency === "complete";
      // A load under way may still bring the page, and nobody would describe it again.
      if (residency === "none" && isLoading) undecided.push(key);
      else if (residency === "none") this.#boundaries.delete(key);
    }
    this.#marked.clear();
    for (const key of undecided) this.#marked.add(key);
    removed.sort((a, b) => b.page - a.page);
    stored.sort((a, b) => a.page - b.page);
    return [
      ...removed.map(({ blockHash }): KvCacheEvent => ({ kind: "blockRemoved", blockHashes: [blockHash] })),
      ...stored.map(
        ({ blockHash, parentBlockHash, tokenIds }): KvCacheEvent => ({
          kind: "blockStored",
          blockHashes: [blockHash],
          parentBlockHash,
          tokenIds,
          blockSize: this.#prefixGranularity,
        }),
      ),
    ];
  }
}

/** The first eight bytes of a namespace root, as the parent of its first page. */
function leadingWords(root: Int32Array): bigint {
  return (BigInt(root[1] >>> 0) << 32n) | BigInt(root[0] >>> 0);
}
