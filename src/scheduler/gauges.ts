/** What a scheduler tells about itself. */

/** Requests by state and LCM blocks by use. */
export interface SchedulerGauges {
  readonly waiting: number;
  readonly prefilling: number;
  readonly decoding: number;
  readonly bootstrapping: number;
  readonly remotePrefilling: number;
  readonly totalLcmBlocks: number;
  /** Empty ones plus those that only the cache holds. */
  readonly availableLcmBlocks: number;
  readonly emptyLcmBlocks: number;
  /** Those that a live request's table names. */
  readonly activeLcmBlocks: number;
  /** Device blocks the prefix index holds, all groups together. */
  readonly cachedBlocks: number;
  readonly hostCachedBlocks: number;
  readonly hostEmptyLcmBlocks: number;
  readonly hostPinnedBlocks: number;
  readonly retractions: number;
  readonly evictions: number;
  /**
   * Rounds in a row that emitted nothing while work was left
   * and nothing was outstanding; worth a warning from 1,024 on.
   */
  readonly stalledRounds: number;
}

/** Prompt tokens a request did not have to compute at its first admission, by where they were found. */
export interface HitTokens {
  readonly device: number;
  readonly host: number;
  readonly storage: number;
}

/** A walk over all books, a slice at a time; starts over when the scheduler moved in between. */
export interface IntegrityCheck {
  /**
   * Looks at about `numBlocks` more blocks. True when the whole walk is done; a leak throws InvariantError.
   */
  step(numBlocks: number): boolean;
}
