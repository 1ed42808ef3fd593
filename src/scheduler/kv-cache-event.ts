/**
 * What the device cache gained and lost, as told to routers
 * outside. Hashes here are 64-bit and not the cache's own.
 */

export interface BlockStored {
  readonly kind: "blockStored";
  readonly blockHashes: readonly bigint[];
  readonly parentBlockHash: bigint | undefined;
  /** The page's tokens; empty for a request with a namespace, whose text is nobody else's business. */
  readonly tokenIds: readonly number[];
  /** Tokens of one block: prefixGranularity. */
  readonly blockSize: number;
}

export interface BlockRemoved {
  readonly kind: "blockRemoved";
  readonly blockHashes: readonly bigint[];
}

export type KvCacheEvent = BlockStored | BlockRemoved;
