/** Builds the operations that executors carry out, and holds a plan's operations to their promise. */
import { assert } from "../../assert";
import type { CacheGroup } from "../cache-group";
import type { BlockId, GroupId } from "../core/ids";
import type { DigestStore } from "../prefix/digest-table";
import type { LoadBackOp, TransferOp, WriteBackOp } from "./transfer-types";

export interface StoreTransfer {
  readonly group: GroupId;
  readonly deviceBlock: BlockId;
  readonly hostBlock: BlockId;
}

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

export function writeBackOp(
  opId: number,
  transfers: readonly StoreTransfer[],
  sourcePinned: boolean,
  groups: readonly CacheGroup[],
): WriteBackOp {
  const base = transferOp(
    opId,
    transfers.map((transfer) => transfer.group),
    transfers.map((transfer) => transfer.deviceBlock),
    transfers.map((transfer) => transfer.hostBlock),
    (i) => ({ store: groups[transfers[i].group].index.digests, block: transfers[i].deviceBlock }),
  );
  return { ...base, sourcePinned };
}

export function loadBackOp(
  opId: number,
  transfers: readonly LoadTransfer[],
  groups: readonly CacheGroup[],
): LoadBackOp {
  const base = transferOp(
    opId,
    transfers.map((transfer) => transfer.group),
    transfers.map((transfer) => transfer.hostBlock),
    transfers.map((transfer) => transfer.deviceBlock),
    (i) => {
      const { hostIndex } = groups[transfers[i].group];
      assert(hostIndex !== undefined, "a load without a Host tier");
      return { store: hostIndex.digests, block: transfers[i].hostBlock };
    },
  );
  return {
    ...base,
    prefetchFromStorage: Uint8Array.from(transfers, (transfer) => Number(transfer.isFromStorage)),
  };
}

function transferOp(
  opId: number,
  groups: readonly GroupId[],
  sources: readonly BlockId[],
  destinations: readonly BlockId[],
  keyOf: (index: number) => { store: DigestStore; block: BlockId },
): TransferOp {
  const contentHashes = new Int32Array(groups.length * 8);
  const pageOffsets = new Int32Array(groups.length);
  for (let i = 0; i < groups.length; i++) {
    const { store, block } = keyOf(i);
    for (let word = 0; word < 8; word++) contentHashes[i * 8 + word] = store.words[block * 8 + word];
    pageOffsets[i] = store.pageOffsets[block];
  }
  return {
    opId,
    numTransfers: groups.length,
    groups: Int32Array.from(groups),
    sources: Int32Array.from(sources),
    destinations: Int32Array.from(destinations),
    contentHashes,
    pageOffsets,
  };
}

/**
 * An operation that copies nothing is never acknowledged, and
 * one copy twice is a lost block: both are ours to avoid.
 */
export function assertWellFormed(ops: readonly TransferOp[]): void {
  const seen = new Set<string>();
  for (const op of ops) {
    assert(op.numTransfers > 0, `transfer operation ${op.opId} has nothing to copy`);
    for (let i = 0; i < op.numTransfers; i++) {
      const key = `${op.groups[i]} ${op.sources[i]} ${op.destinations[i]}`;
      assert(!seen.has(key), `transfer ${key} repeats within one plan`);
      seen.add(key);
    }
  }
}
