/**
 * What a request has done since the coordinator last heard
 * of it. Filled by the scheduler before each transaction.
 */
import type { Int32List } from "../core/int32-list";
import { type BoundaryKind, boundaryKind } from "../prefix/prefix-cache-index";
import type { PrefixChain } from "../prefix/prefix-chain";

/** Prefix pages [firstNewPage, numPages) that were completed, and what their end means. */
export class CompletedPages {
  firstNewPage = 0;
  numPages = 0;
  boundaryKind: BoundaryKind = boundaryKind.chunk;
  /** Kind for state groups. */
  stateKind: BoundaryKind = boundaryKind.chunk;
  /**
   * When the range ends a whole prompt at a page boundary:
   * the page count from which the same prompt would resume.
   */
  repeatPage = 0;
  /** Newly published blocks also go to Host. */
  streamToHost = false;

  get isEmpty(): boolean {
    return this.numPages <= this.firstNewPage;
  }

  clear(): void {
    this.firstNewPage = 0;
    this.numPages = 0;
    this.repeatPage = 0;
  }
}

export interface RequestProgress {
  readonly chain: PrefixChain;
  readonly completed: CompletedPages;
  /** Positions, ascending, at which state groups hold a snapshot that no hash covered yet. */
  readonly stateBoundaries: Int32List;
  /** Tokens whose computation was scheduled; -1 before the first admission. */
  readonly numComputedTokens: number;
}
