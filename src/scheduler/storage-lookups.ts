/**
 * The scheduler's words with the far storage: which keys a
 * prompt's pages have, and which of them are believed to exist.
 */
import { demand } from "../assert";
import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import { numAvailableLcmBlocks } from "../cache/coordinator/capacity-views";
import { PrefixChain } from "../cache/prefix/prefix-chain";
import { digestToHex, hexToDigest } from "../cache/prefix/prefix-hasher";
import type { StorageKey } from "../cache/tier/storage-key-shadow";
import type { Request } from "./request";
import type { RequestBook } from "./request-book";
import type { RequestSlots } from "./request-slots";
import { RequestTokens } from "./request-tokens";
import type { Rounds } from "./rounds";
import type { SchedulerSettings } from "./settings";

/** Keys of blocks in storage; three lists of equal length. */
export interface StorageKeys {
  readonly groups: readonly number[];
  readonly hashes: readonly string[];
  readonly pageOffsets: readonly number[];
}

export class StorageLookups {
  readonly #settings: SchedulerSettings;
  readonly #coordinator: CacheCoordinator;
  readonly #book: RequestBook;
  readonly #slots: RequestSlots;
  readonly #rounds: Rounds;

  constructor(
    settings: SchedulerSettings,
    coordinator: CacheCoordinator,
    book: RequestBook,
    slots: RequestSlots,
    rounds: Rounds,
  ) {
    this.#settings = settings;
    this.#coordinator = coordinator;
    this.#book = book;
    this.#slots = slots;
    this.#rounds = rounds;
  }

  prefixHashesForTokens(tokens: Int32Array, namespaceRoot?: Uint8Array): string[] {
    const chain = new PrefixChain(namespaceRoot);
    const numPages = Math.floor((tokens.length - 1) / this.#settings.prefixGranularity);
    chain.extend(numPages, new RequestTokens(tokens), this.#coordinator.hasher, this.#coordinator.buffers);
    const hashes = hexHashes(chain, numPages);
    chain.release(this.#coordinator.buffers);
    return hashes;
  }

  /** Only of work that could get a slot and a block now; the rest need not be looked up yet. */
  waitingPrefixHashes(): string[] {
    const candidates: Request[] = [];
    const readmission = this.#rounds.readmission();
    if (readmission !== undefined) candidates.push(readmission);
    if (this.#book.prefilling.size === 0 && numAvailableLcmBlocks(this.#coordinator) > 0) {
      let request = this.#book.newPrompts.first;
      for (; request !== undefined && candidates.length < this.#slots.numFree; request = request.next) {
        candidates.push(request);
      }
    }
    const hashes: string[] = [];
    for (const { chain, tokens, prefillTokens } of candidates.slice(0, this.#slots.numFree)) {
      const numPages = Math.floor((prefillTokens - 1) / this.#settings.prefixGranularity);
      chain.extend(numPages, tokens, this.#coordinator.hasher, this.#coordinator.buffers);
      hashes.push(...hexHashes(chain, numPages));
    }
    return hashes;
  }

  expandPrefixKeys(hashes: readonly string[]): StorageKeys {
    const keys = { groups: [] as number[], hashes: [] as string[], pageOffsets: [] as number[] };
    for (const group of this.#coordinator.groups) {
      if (!group.isMatched) continue;
      for (const hash of hashes) {
        for (let offset = 0; offset < group.geometry.blocksPerPrefixPage; offset++) {
          keys.groups.push(group.spec.group);
          keys.hashes.push(hash);
          keys.pageOffsets.push(offset);
        }
      }
    }
    return keys;
  }

  register(keys: StorageKeys): void {
    const ordered = byPrefixPosition(keys).map(toStorageKey);
    this.#coordinator.storageKeys?.register(ordered);
    this.#coordinator.changeVersion++;
  }

  unregister(keys: StorageKeys): void {
    for (const { group, digests, at, pageOffset } of byPrefixPosition(keys).map(toStorageKey)) {
      this.#coordinator.storageKeys?.remove(group, digests, at, pageOffset);
    }
    this.#coordinator.changeVersion++;
  }
}

interface HexKey {
  readonly group: number;
  readonly hash: string;
  readonly pageOffset: number;
}

function toStorageKey({ group, hash, pageOffset }: HexKey): StorageKey {
  return { group, digests: hexToDigest(hash), at: 0, pageOffset };
}

/**
 * Keys by their page's first appearance, then by offset, then by group: a prefix of them is a usable prefix.
 */
function byPrefixPosition({ groups, hashes, pageOffsets }: StorageKeys): HexKey[] {
  demand(
    groups.length === hashes.length && groups.length === pageOffsets.length,
    "invalidArgument",
    "Scheduler: lists of storage keys must have equal length",
  );
  const position = new Map<string, number>();
  for (const hash of hashes) if (!position.has(hash)) position.set(hash, position.size);
  const keys = groups.map((group, i) => ({ group, hash: hashes[i], pageOffset: pageOffsets[i] }));
  return keys.sort(
    (a, b) =>
      (position.get(a.hash) ?? 0) - (position.get(b.hash) ?? 0) ||
      a.pageOffset - b.pageOffset ||
      a.group - b.group,
  );
}

function hexHashes(chain: PrefixChain, numPages: number): string[] {
  return Array.from({ length: numPages }, (_, page) => digestToHex(chain.words, page * 8));
}
