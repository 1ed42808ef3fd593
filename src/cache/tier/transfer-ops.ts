/** Builds the operations that executors carry out. What is copied is TierTransferManager's affair. */
import { assert } from "../../assert";
import type { CacheGroup } from "../cache-group";
import type { BlockId, GroupId } from "../core/ids";
import type { DigestStore } from "../prefix/digest-table";
import type { LoadBackOp, TransferOp, WriteBackOp } from "./transfer-types";

export interface LoadTransfer {
  readonly group: GroupId;
  readonly hostBlock: BlockId;
  readonly deviceBlock: BlockId;
  /** Slot of the destination in its table. */
  readonly slot: number;
  /** The destination is published when the load succeeded; others were published at admission. */
  readonly isKeyed: boolean;
  readonly isFromStorage: boolean;
}

/** Transfer i copies block `sources[i]` of group `groups[i]` to Host block `destinations[i]`. */
export function writeBackOp(
  opId: number,
  groups: readonly GroupId[],
  sources: readonly BlockId[],
  destinations: readonly BlockId[],
  sourcePinned: boolean,
  cacheGroups: readonly CacheGroup[],
): WriteBackOp {
  const digestsOf = (group: GroupId) => cacheGroups[group].index.digests;
  return { ...transferOp(opId, groups, sources, destinations, digestsOf), sourcePinned };
}

export function loadBackOp(
  opId: number,
  transfers: readonly LoadTransfer[],
  cacheGroups: readonly CacheGroup[],
): LoadBackOp {
  const base = transferOp(
    opId,
    transfers.map((transfer) => transfer.group),
    transfers.map((transfer) => transfer.hostBlock),
    transfers.map((transfer) => transfer.deviceBlock),
    (group) => {
      const { hostIndex } = cacheGroups[group];
      assert(hostIndex !== undefined, "a load without a Host tier");
      return hostIndex.digests;
    },
  );
  return {
    ...base,
    prefetchFromStorage: Uint8Array.from(transfers, (transfer) => Number(transfer.isFromStorage)),
  };
}

/** A block's key is where it comes from; the destination may not have it yet. */
function transferOp(
  opId: number,
  groups: readonly GroupId[],
  sources: readonly BlockId[],
  destinations: readonly BlockId[],
  digestsOf: (group: GroupId) => DigestStore,
): TransferOp {
  const numTransfers = groups.length;
  const op = {
    opId,
    numTransfers,
    groups: new Int32Array(numTransfers),
    sources: new Int32Array(numTransfers),
    destinations: new Int32Array(numTransfers),
    contentHashes: new Int32Array(numTransfers * 8),
    pageOffsets: new Int32Array(numTransfers),
  };
  const { contentHashes } = op;
  for (let i = 0; i < numTransfers; i++) {
    const source = sources[i];
    const { words, pageOffsets } = digestsOf(groups[i]);
    for (let word = 0; word < 8; word++) contentHashes[i * 8 + word] = words[source * 8 + word];
    op.pageOffsets[i] = pageOffsets[source];
    op.groups[i] = groups[i];
    op.sources[i] = source;
    op.destinations[i] = destinations[i];
  }
  return op;
}
