/**
 * Whether a prefix boundary is on the device in every group that matches: the question behind cache events.
 */
import type { CacheCoordinator } from "./cache-coordinator";

export type BoundaryResidency = "none" | "partial" | "complete";

/** Looks the page's blocks up in every group; replayable groups have none. */
export function deviceBoundaryResidency(
  { groups }: CacheCoordinator,
  digests: Int32Array,
  at: number,
): BoundaryResidency {
  let expected = 0;
  let found = 0;
  for (const group of groups) {
    if (!group.isMatched) continue;
    const r = group.geometry.blocksPerPrefixPage;
    expected += r;
    for (let offset = 0; offset < r; offset++) if (group.index.find(digests, at, offset) !== 0) found++;
  }
  if (found === 0) return "none";
  return found === expected ? "complete" : "partial";
}
