/**
 * What the pool's state means to a scheduler: counts of LCM
 * blocks and of blocks, nothing about where they are.
 */
import type { BlockTable } from "../core/block-table";
import type { GroupId, LcmBlockId } from "../core/ids";
import type { CacheCoordinator } from "./cache-coordinator";

/** Empty LCM blocks and those that only the cache holds. */
export function numAvailableLcmBlocks({ device }: CacheCoordinator): number {
  return device.pool.numEmpty + device.census.numIdle;
}

/** LCM blocks that some live table names. */
export function numActiveLcmBlocks({ device }: CacheCoordinator): number {
  return device.census.numActive;
}

/** Blocks that a group could take without eviction if it were alone. */
export function groupAvailableBlocks({ device }: CacheCoordinator, group: GroupId): number {
  return device.pool.availableOf(group);
}

/** False when some group could not get a single block, not even by evicting all it may. */
export function canEveryGroupGetABlock({ device, groups }: CacheCoordinator): boolean {
  if (device.pool.numEmpty + device.census.numIdle > 0) return true;
  for (const { spec, index } of groups) {
    if (device.pool.freeSlotsOf(spec.group) === 0 && index.numIdle === 0) return false;
  }
  return true;
}

/**
 * LCM blocks that would hold nothing but cache entries, or nothing at all, once these tables are freed.
 * Parents that others share in do not count.
 */
export function numNewlyReleasableLcmBlocks(
  { device, groups }: CacheCoordinator,
  tables: readonly BlockTable[],
): number {
  const releasable = new Map<LcmBlockId, number>();
  for (const { spec, index, allocator } of groups) {
    const table = tables[spec.group];
    for (let slot = 0; slot < table.length; slot++) {
      const block = table.at(slot);
      if (block === 0) continue;
      if (allocator.refs.ownersOf(block) !== (index.isCached(block) ? 2 : 1)) continue;
      const parent = device.pool.parentOf(spec.group, block);
      releasable.set(parent, (releasable.get(parent) ?? 0) + 1);
    }
  }
  let count = 0;
  for (const [parent, children] of releasable) if (children === device.pool.occupancyOf(parent)) count++;
  return count;
}
