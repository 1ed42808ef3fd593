/** Which cached blocks of an ending request are worth a place on Host. */
import type { CacheGroup } from "../cache-group";
import type { PrefixChain } from "../prefix/prefix-chain";
import type { CacheCoordinator } from "./cache-coordinator";

/**
 * Queues every cached history block of the chain's known pages
 * and, for each state group, its newest cached snapshot within
 * `prefillTokens` and the one from which the same prompt would resume.
 */
export function queueChainStores(
  { groups, tier, prefixGranularity }: CacheCoordinator,
  chain: PrefixChain,
  prefillTokens: number,
): void {
  if (tier === undefined) return;
  for (const group of groups) {
    if (!group.isMatched) continue;
    if (group.spec.kind === "state") {
      const numPages = Math.min(Math.floor(prefillTokens / prefixGranularity), chain.numKnown);
      const repeatPage = Math.floor((prefillTokens - 1) / prefixGranularity);
      let page = numPages;
      while (page > 0 && snapshotAt(group, chain, page) === 0) page--;
      if (page > 0) tier.queueStore(group.spec.group, snapshotAt(group, chain, page));
      if (repeatPage > 0 && repeatPage < page && snapshotAt(group, chain, repeatPage) !== 0) {
        tier.queueStore(group.spec.group, snapshotAt(group, chain, repeatPage));
      }
    } else {
      const r = group.geometry.blocksPerPrefixPage;
      for (let slot = 0; slot < chain.numKnown * r; slot++) {
        const page = Math.floor(slot / r);
        const block = group.index.find(chain.words, page * 8, slot - page * r);
        if (block !== 0 && group.index.isWorthHost(block)) tier.queueStore(group.spec.group, block);
      }
    }
  }
}

/** The cached snapshot at the end of a page count, 0 when there is none. */
function snapshotAt(group: CacheGroup, chain: PrefixChain, numPages: number): number {
  return group.index.find(chain.words, (numPages - 1) * 8, group.geometry.blocksPerPrefixPage - 1);
}
