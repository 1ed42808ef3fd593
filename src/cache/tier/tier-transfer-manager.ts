/**
 * Copies between Device and Host as the books see them: which are wanted, which are under way and what they
 * pin. Issues operations and takes acknowledgements; moves no byte itself.
 */
import { assert } from "../../assert";
import type { CacheGroup, CacheTier } from "../cache-group";
import type { CacheBlockRefs } from "../core/cache-block-refs";
import type { BlockId, GroupId } from "../core/ids";
import { Int32List } from "../core/int32-list";
import { DigestTable } from "../prefix/digest-table";
import { boundaryKind, type PrefixCacheIndex } from "../prefix/prefix-cache-index";
import { HostAllocator } from "./host-allocator";
import type { StorageKeyShadow } from "./storage-key-shadow";
import { type LoadTransfer, loadBackOp, writeBackOp } from "./transfer-ops";
import type { LoadBackOp, WriteBackOp } from "./transfer-types";

/**
 * Stores that may be under way in a group before their table grows. In one as large as the Host tier every
 * key would meet a slot that no cache holds.
 */
const numStoresAtFirst = 1024;

interface LoadTicket {
  readonly transfers: readonly LoadTransfer[];
  readonly epoch: number;
}

export class TierTransferManager {
  readonly #groups: readonly CacheGroup[];
  readonly hostAllocator: HostAllocator;
  readonly #shadow: StorageKeyShadow | undefined;
  readonly #issueEpoch: () => number;
  /** Queued (group, device block) pairs. */
  readonly #pending = new Int32List(0);
  /** By group and device block, 1 while an operation's wants are put together and the block is among them. */
  readonly #isWanted: readonly Uint8Array[];
  /** By group: Host blocks that a store under way is filling, found by key. */
  readonly #storing: readonly DigestTable[];
  readonly #stores = new Map<number, WriteBackOp>();
  readonly #loads = new Map<number, LoadTicket>();
  #nextOpId = 0;
  #numPinnedStores = 0;

  constructor(
    groups: readonly CacheGroup[],
    host: CacheTier,
    shadow: StorageKeyShadow | undefined,
    issueEpoch: () => number,
  ) {
    this.#groups = groups;
    this.hostAllocator = new HostAllocator(groups, host);
    this.#shadow = shadow;
    this.#issueEpoch = issueEpoch;
    this.#isWanted = groups.map(({ allocator, spec }) => {
      const { pool } = allocator.refs;
      return new Uint8Array(pool.numLcmBlocks * pool.packingOf(spec.group) + 1);
    });
    this.#storing = groups.map(
      ({ spec }) => new DigestTable(this.#hostIndex(spec.group).digests, numStoresAtFirst),
    );
  }

  get numPendingStores(): number {
    return this.#pending.length / 2;
  }

  get numStoresInFlight(): number {
    return this.#stores.size;
  }

  get numLoadsInFlight(): number {
    return this.#loads.size;
  }

  /** A pinned store or a load is under way: nobody may be retracted for capacity now. */
  get holdsDeviceBlocks(): boolean {
    return this.#numPinnedStores > 0 || this.#loads.size > 0;
  }

  /** Wants a cached device block on Host, should it still be cached when the queue is drained. */
  queueStore(group: GroupId, block: BlockId): void {
    this.#pending.push(group);
    this.#pending.push(block);
  }

  pendingStores(): readonly { group: GroupId; block: BlockId }[] {
    return Array.from({ length: this.numPendingStores }, (_, i) => ({
      group: this.#pending.items[i * 2],
      block: this.#pending.items[i * 2 + 1],
    }));
  }

  dropPendingStores(): void {
    this.#pending.clear();
  }

  /**
   * Turns the queue into one operation, undefined when nothing of it is wanted
   * or fits. Pinned: the sources stay until the acknowledgement. Otherwise they
   * may be re-granted at once, because the copy goes first in stream order.
   */
  startPendingStores(sourcePinned: boolean): WriteBackOp | undefined {
    if (this.#pending.length === 0) return undefined;
    const groups: GroupId[] = [];
    const deviceBlocks: BlockId[] = [];
    this.#takeWanted(groups, deviceBlocks);
    const hostBlocks = this.hostAllocator.acquire(groups);
    let count = 0;
    for (let i = 0; i < groups.length; i++) {
      if (hostBlocks[i] === 0) continue;
      this.#startStore(groups[i], deviceBlocks[i], hostBlocks[i], sourcePinned);
      groups[count] = groups[i];
      deviceBlocks[count] = deviceBlocks[i];
      hostBlocks[count++] = hostBlocks[i];
    }
    if (count === 0) return undefined;
    for (const list of [groups, deviceBlocks, hostBlocks]) list.length = count;
    if (sourcePinned) this.#numPinnedStores++;
    const opId = this.#nextOpId++;
    const op = writeBackOp(opId, groups, deviceBlocks, hostBlocks, sourcePinned, this.#groups);
    this.#stores.set(opId, op);
    return op;
  }

  /**
   * Publishes what a store brought to Host. False for an
   * operation that is unknown or was acknowledged before.
   */
  writeBackDone(opId: number): boolean {
    const op = this.#stores.get(opId);
    if (op === undefined) return false;
    this.#stores.delete(opId);
    if (op.sourcePinned) this.#numPinnedStores--;
    const epoch = this.#issueEpoch();
    const { groups, sources, destinations } = op;
    for (let i = 0; i < groups.length; i++) {
      const group = groups[i];
      this.#storing[group].remove(destinations[i]);
      this.#publishOnHost(group, destinations[i], epoch);
      this.#hostRefs(group).release(destinations[i]);
      if (op.sourcePinned) this.#groups[group].allocator.refs.release(sources[i]);
    }
    return true;
  }

  /** Starts the loads of an admission, which pinned both ends of each; the pins pass to the ticket. */
  startLoads(transfers: readonly LoadTransfer[], epoch: number): LoadBackOp {
    const opId = this.#nextOpId++;
    this.#loads.set(opId, { transfers, epoch });
    return loadBackOp(opId, transfers, this.#groups);
  }

  /** Drops a load's pins and, when it succeeded, publishes what came from storage. */
  loadBackDone(opId: number, success: boolean): boolean {
    const ticket = this.#loads.get(opId);
    if (ticket === undefined) return false;
    this.#loads.delete(opId);
    const hostEpoch = success ? this.#issueEpoch() : 0;
    for (const { group, hostBlock, deviceBlock, slot, isKeyed, isFromStorage } of ticket.transfers) {
      const host = this.#hostIndex(group).digests;
      if (success && isFromStorage) this.#publishOnHost(group, hostBlock, hostEpoch);
      if (success && isKeyed) {
        const kind = boundaryKind.chunk;
        const pageOffset = host.pageOffsets[hostBlock];
        const { index } = this.#groups[group];
        if (!index.isCached(deviceBlock)) {
          index.register(deviceBlock, host.words, hostBlock * 8, pageOffset, kind, ticket.epoch, slot);
        }
      }
      this.#hostRefs(group).release(hostBlock);
      this.#groups[group].allocator.refs.release(deviceBlock);
    }
    return true;
  }

  /** Every ownership of a device block that a copy under way holds. */
  forEachDevicePin(visit: (group: GroupId, block: BlockId) => void): void {
    for (const { groups, sources, sourcePinned } of this.#stores.values()) {
      if (!sourcePinned) continue;
      for (let i = 0; i < groups.length; i++) visit(groups[i], sources[i]);
    }
    for (const { transfers } of this.#loads.values()) {
      for (const { group, deviceBlock } of transfers) visit(group, deviceBlock);
    }
  }

  /** The same for Host blocks. */
  forEachHostPin(visit: (group: GroupId, block: BlockId) => void): void {
    for (const { groups, destinations } of this.#stores.values()) {
      for (let i = 0; i < groups.length; i++) visit(groups[i], destinations[i]);
    }
    for (const { transfers } of this.#loads.values()) {
      for (const { group, hostBlock } of transfers) visit(group, hostBlock);
    }
  }

  #publishOnHost(group: GroupId, hostBlock: BlockId, epoch: number): void {
    const index = this.#hostIndex(group);
    const { words, pageOffsets } = index.digests;
    const pageOffset = pageOffsets[hostBlock];
    index.register(hostBlock, words, hostBlock * 8, pageOffset, boundaryKind.chunk, epoch, -1);
    this.#shadow?.add(group, words, hostBlock * 8, pageOffset);
  }

  /** Empties the queue; takes of it what is cached on the device and neither on Host nor on the way, once. */
  #takeWanted(groups: GroupId[], deviceBlocks: BlockId[]): void {
    const pending = this.#pending;
    for (let i = 0; i < pending.length; i += 2) {
      const group = pending.items[i];
      const deviceBlock = pending.items[i + 1];
      const { index } = this.#groups[group];
      if (!index.isCached(deviceBlock) || this.#isWanted[group][deviceBlock] === 1) continue;
      const { words, pageOffsets } = index.digests;
      const pageOffset = pageOffsets[deviceBlock];
      if (this.#hostIndex(group).find(words, deviceBlock * 8, pageOffset) !== 0) continue;
      if (this.#storing[group].find(words, deviceBlock * 8, pageOffset) !== 0) continue;
      this.#isWanted[group][deviceBlock] = 1;
      groups.push(group);
      deviceBlocks.push(deviceBlock);
    }
    pending.clear();
    for (let i = 0; i < groups.length; i++) this.#isWanted[groups[i]][deviceBlocks[i]] = 0;
  }

  /** Marks a store as under way; the Host block belongs to it. */
  #startStore(group: GroupId, deviceBlock: BlockId, hostBlock: BlockId, sourcePinned: boolean): void {
    const { words, pageOffsets } = this.#groups[group].index.digests;
    this.#hostIndex(group).digests.put(hostBlock, words, deviceBlock * 8, pageOffsets[deviceBlock]);
    this.#storing[group].add(hostBlock);
    if (sourcePinned) this.#groups[group].allocator.refs.retain(deviceBlock);
  }

  #hostIndex(group: GroupId): PrefixCacheIndex {
    const { hostIndex } = this.#groups[group];
    assert(hostIndex !== undefined, "a transfer without a Host tier");
    return hostIndex;
  }

  #hostRefs(group: GroupId): CacheBlockRefs {
    const { hostRefs } = this.#groups[group];
    assert(hostRefs !== undefined, "a transfer without a Host tier");
    return hostRefs;
  }
}
