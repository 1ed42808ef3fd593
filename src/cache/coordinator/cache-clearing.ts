/** Emptying the cache, and whether that is possible: only when nobody but the indexes holds an entry. */
import type { CacheCoordinator } from "./cache-coordinator";

/** The device's entries could be dropped now. */
export function canClearDeviceCache({ groups, tier }: CacheCoordinator): boolean {
  if (tier !== undefined && (tier.numStoresInFlight > 0 || tier.numLoadsInFlight > 0)) return false;
  return groups.every(({ index }) => index.numIdle === index.numEntries);
}

export function canClearHostCache({ groups, tier }: CacheCoordinator): boolean {
  if (tier !== undefined && (tier.numStoresInFlight > 0 || tier.numLoadsInFlight > 0)) return false;
  return groups.every(
    ({ hostIndex }) => hostIndex === undefined || hostIndex.numIdle === hostIndex.numEntries,
  );
}

/**
 * Drops the device's entries and the belief about storage; false, with nothing changed, when some are in use.
 */
export function clearDeviceCache(coordinator: CacheCoordinator): boolean {
  if (!canClearDeviceCache(coordinator)) return false;
  coordinator.tier?.dropPendingStores();
  coordinator.storageKeys?.clear();
  for (const { index } of coordinator.groups) index.clear();
  return true;
}

export function canClearCache(coordinator: CacheCoordinator): boolean {
  return canClearHostCache(coordinator) && canClearDeviceCache(coordinator);
}

/** Drops both tiers, or nothing. */
export function clearCache(coordinator: CacheCoordinator): boolean {
  if (!canClearCache(coordinator)) return false;
  clearDeviceCache(coordinator);
  for (const { hostIndex } of coordinator.groups) hostIndex?.clear();
  return true;
}
