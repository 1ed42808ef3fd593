/**
 * The Host side of an admission: pins what Host has, takes blocks for what only storage has, and turns both
 * into the load that fills the device. All or nothing; a shortage shortens the probe instead.
 */
import { assert } from "../../assert";
import type { CacheGroup } from "../cache-group";
import type { BlockTable } from "../core/block-table";
import type { CacheBlockRefs } from "../core/cache-block-refs";
import type { PrefixCacheIndex } from "../prefix/prefix-cache-index";
import type { PrefixChain } from "../prefix/prefix-chain";
import { inStorage } from "../prefix/prefix-matcher";
import type { TierTransferManager } from "../tier/tier-transfer-manager";
import type { LoadTransfer } from "../tier/transfer-ops";
import type { PrefixProbe, PrefixProber, ProbeSource } from "./prefix-probe";

interface HostClaim {
  readonly group: CacheGroup;
  /** Slot of the table. */
  readonly slot: number;
  readonly hostBlock: number;
  readonly isFromStorage: boolean;
}

export class HostExtension {
  readonly #groups: readonly CacheGroup[];
  readonly #prefixGranularity: number;
  readonly #prober: PrefixProber;
  readonly #tier: TierTransferManager;
  #claims: HostClaim[] = [];

  constructor(
    groups: readonly CacheGroup[],
    prefixGranularity: number,
    prober: PrefixProber,
    tier: TierTransferManager,
  ) {
    this.#groups = groups;
    this.#prefixGranularity = prefixGranularity;
    this.#prober = prober;
    this.#tier = tier;
  }

  /**
   * Pins the probe's Host part. False when Host was short: then nothing is pinned and the probe ends at the
   * highest boundary for which Host has room now.
   */
  claim(probe: PrefixProbe, source: ProbeSource): boolean {
    const wanted = probe.hostTokens;
    while (probe.hostTokens > probe.deviceTokens) {
      const failedAt = this.#claimAll(probe, source.chain);
      if (failedAt < 0) break;
      this.drop();
      const aligned = failedAt - (failedAt % this.#prefixGranularity);
      const bound = Math.min(aligned, probe.hostTokens - this.#prefixGranularity);
      this.#prober.shortenHost(source, Math.max(bound, probe.deviceTokens), probe);
    }
    if (probe.hostTokens === wanted) return true;
    this.drop();
    return false;
  }

  /** Lets go of everything that `claim` pinned. */
  drop(): void {
    for (const { group, hostBlock } of this.#claims) hostRefsOf(group).release(hostBlock);
    this.#claims = [];
  }

  /** Marks what was pinned on Host as used at this epoch. */
  markAcquired(epoch: number): void {
    for (const { group, hostBlock, isFromStorage } of this.#claims) {
      if (!isFromStorage) hostIndexOf(group).markAcquired(hostBlock, epoch);
    }
  }

  /** Prefix pages of the extension that some group must read from storage. */
  storagePages(): ReadonlySet<number> {
    const pages = new Set<number>();
    for (const { group, slot, isFromStorage } of this.#claims) {
      if (isFromStorage) pages.add(Math.floor(slot / group.geometry.blocksPerPrefixPage));
    }
    return pages;
  }

  /** Transfers for all claims, whose pins and one more owner of each destination go to the transfer. */
  takeTransfers(tables: readonly BlockTable[], storagePages: ReadonlySet<number>): LoadTransfer[] {
    const transfers = this.#claims.map(({ group, slot, hostBlock, isFromStorage }) => {
      const deviceBlock = tables[group.spec.group].at(slot);
      group.allocator.refs.retain(deviceBlock);
      const page = Math.floor(slot / group.geometry.blocksPerPrefixPage);
      const isKeyed = storagePages.has(page);
      return { group: group.spec.group, hostBlock, deviceBlock, slot, isKeyed, isFromStorage };
    });
    this.#claims = [];
    return transfers;
  }

  /** Pins and takes all; -1, or the token at which a block could not be had. */
  #claimAll(probe: PrefixProbe, chain: PrefixChain): number {
    this.#claims = [];
    this.#forEachSlot(probe, (group, slot, hostBlock) => {
      if (hostBlock === inStorage) return true;
      hostRefsOf(group).retain(hostBlock);
      this.#claims.push({ group, slot, hostBlock, isFromStorage: false });
      return true;
    });
    let failedAt = -1;
    this.#forEachSlot(probe, (group, slot, marker) => {
      if (marker !== inStorage) return true;
      const [hostBlock] = this.#tier.hostAllocator.acquire([group.spec.group]);
      if (hostBlock === 0) {
        failedAt = slot * group.geometry.blockGranularity;
        return false;
      }
      const r = group.geometry.blocksPerPrefixPage;
      const page = Math.floor(slot / r);
      hostIndexOf(group).digests.put(hostBlock, chain.words, page * 8, slot - page * r);
      this.#claims.push({ group, slot, hostBlock, isFromStorage: true });
      return true;
    });
    if (failedAt < 0) this.#claims.sort((a, b) => a.group.spec.group - b.group.spec.group || a.slot - b.slot);
    return failedAt;
  }

  #forEachSlot(probe: PrefixProbe, visit: (group: CacheGroup, slot: number, block: number) => boolean): void {
    for (const group of this.#groups) {
      const match = probe.host[group.spec.group];
      const first = probe.deviceTokens / group.geometry.blockGranularity;
      for (let i = 0; i < match.length; i++) {
        if (match.slots[i] !== 0 && !visit(group, first + i, match.slots[i])) return;
      }
    }
  }
}

function hostRefsOf(group: CacheGroup): CacheBlockRefs {
  assert(group.hostRefs !== undefined, "a Host hit without a Host tier");
  return group.hostRefs;
}

function hostIndexOf(group: CacheGroup): PrefixCacheIndex {
  assert(group.hostIndex !== undefined, "a Host hit without a Host tier");
  return group.hostIndex;
}
