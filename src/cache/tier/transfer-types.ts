/** Copies between tiers as an executor sees them. */

/** Copies that are acknowledged together. The executor copies the lists when it submits them. */
export interface TransferOp {
  readonly opId: number;
  readonly numTransfers: number;
  /** Index of the cache group of each transfer. */
  readonly groups: Int32Array;
  readonly sources: Int32Array;
  readonly destinations: Int32Array;
  /** Content hash of each block: eight int32 words a transfer, little-endian. */
  readonly contentHashes: Int32Array;
  /** Ordinal of the block inside its prefix page. */
  readonly pageOffsets: Int32Array;
}

/** Device to Host. */
export interface WriteBackOp extends TransferOp {
  /**
   * True: the device blocks stay as they are until the acknowledgement. False: they may be granted anew in
   * this very plan, so the copy goes in front of everything else of the plan.
   */
  readonly sourcePinned: boolean;
}

/** Host to device. */
export interface LoadBackOp extends TransferOp {
  /** 1 where the Host block must first be read from storage. */
  readonly prefetchFromStorage: Uint8Array;
}
