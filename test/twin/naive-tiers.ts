/** The obvious tier traffic of the naive cache: stores, loads and how Host makes room. */
import type { NaiveCache, NaiveTransfer } from "./naive-cache";
import type { NaiveEntry } from "./naive-index";
import { isLess, type NaiveBlock } from "./naive-pool";

/** One store operation out of everything that is wanted, undefined when there is nothing to copy. */
export function startStores(cache: NaiveCache, pinned: boolean): number | undefined {
  const wanted: { group: number; entry: NaiveEntry }[] = [];
  const underWay = new Set(
    [...cache.stores.values()].flat().map((transfer) => `${transfer.group} ${transfer.key}`),
  );
  for (const { group, key } of cache.pending) {
    const entry = cache.index[group].entries.get(key);
    if (entry === undefined || cache.hostIndex[group].entries.has(key)) continue;
    if (underWay.has(`${group} ${key}`)) continue;
    underWay.add(`${group} ${key}`);
    wanted.push({ group, entry });
  }
  cache.pending = [];
  const blocks = acquireOnHost(
    cache,
    wanted.map(({ group }) => group),
  );
  const transfers = wanted.flatMap(({ group, entry }, i): NaiveTransfer[] => {
    const destination = blocks[i];
    if (destination === undefined) return [];
    if (pinned) entry.block.owners++;
    return [{ group, source: entry.block, destination, key: entry.key, pinned }];
  });
  if (transfers.length === 0) return undefined;
  cache.stores.set(cache.nextOp, transfers);
  return cache.nextOp++;
}

export function storeDone(cache: NaiveCache, op: number): void {
  const transfers = cache.stores.get(op);
  if (transfers === undefined) return;
  cache.stores.delete(op);
  const epoch = ++cache.clock;
  for (const { group, source, destination, key, pinned } of transfers) {
    cache.hostIndex[group].register(destination, key, 0, epoch, -1);
    cache.hostPool.release(destination);
    if (pinned) cache.pool.release(source);
  }
}

export function loadDone(cache: NaiveCache, op: number, success: boolean): void {
  const transfers = cache.loads.get(op);
  if (transfers === undefined) return;
  cache.loads.delete(op);
  if (success) cache.clock++;
  for (const { source, destination } of transfers) {
    cache.hostPool.release(source);
    cache.pool.release(destination);
  }
}

/** Free places first, then a group's own worst entries, then whole parents, the least valuable first. */
function acquireOnHost(cache: NaiveCache, wanted: readonly number[]): (NaiveBlock | undefined)[] {
  const pool = cache.hostPool;
  const granted = wanted.map((group) => pool.acquire(group));
  const short = [...new Set(wanted.filter((_, i) => granted[i] === undefined))];
  for (const group of short) {
    wanted.forEach((wants, i) => {
      if (granted[i] !== undefined || wants !== group) return;
      const idle = [...cache.hostIndex[group].entries.values()].filter((entry) => entry.block.owners === 1);
      idle.sort((a, b) => (isLess(value(a), value(b)) ? -1 : 1));
      if (idle.length === 0) return;
      cache.hostIndex[group].evict(idle[0]);
      granted[i] = pool.acquire(group);
    });
  }
  if (!granted.includes(undefined)) return granted;
  const parents = idleParents(cache);
  wanted.forEach((group, i) => {
    granted[i] ??= pool.acquire(group);
    while (granted[i] === undefined && parents.length > 0) {
      const parent = parents.shift();
      if (parent === undefined || !isIdle(cache, parent)) continue;
      const owner = pool.parents[parent].group;
      for (const block of pool.occupants(parent)) {
        const entry = cache.hostIndex[owner].entryOf(block);
        if (entry !== undefined) cache.hostIndex[owner].evict(entry);
      }
      granted[i] = pool.acquire(group);
    }
  });
  return granted;
}

function value({ acquired, epoch, block }: NaiveEntry): number[] {
  return [Number(acquired), epoch, block.group, block.parent, block.slot];
}

function isIdle(cache: NaiveCache, parent: number): boolean {
  const occupants = cache.hostPool.occupants(parent);
  return (
    occupants.length > 0 &&
    occupants.every(
      (block) => block.owners === 1 && cache.hostIndex[block.group].entryOf(block) !== undefined,
    )
  );
}

/** Parents that could go whole, by their most valuable child. */
function idleParents(cache: NaiveCache): number[] {
  const best = (parent: number) =>
    cache.hostPool
      .occupants(parent)
      .map((block) => value(cache.hostIndex[block.group].entryOf(block) as NaiveEntry))
      .reduce((a, b) => (isLess(a, b) ? b : a));
  return cache.hostPool.parents
    .map((_, id) => id)
    .filter((id) => id > 0 && isIdle(cache, id))
    .sort((a, b) => (isLess(best(a), best(b)) ? -1 : 1));
}
