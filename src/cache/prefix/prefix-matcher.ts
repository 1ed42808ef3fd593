/**
 * How a kind of attention can resume from cached blocks. A matcher reads an index and nothing else. Positions
 * are slots of the group's table; a slot's key is its prefix page's digest and its ordinal in that page.
 */
import type { BlockId } from "../core/ids";

/** Where matched blocks are looked up: an index, on Host perhaps with what storage is known to hold. */
export interface BlockLookup {
  /** The block of a slot, 0 on a miss, `inStorage` for a block that only storage holds. */
  blockAt(slot: number): BlockId;
}

/** Stands for a block that storage holds and no tier of ours does. */
export const inStorage = -1;

/** Table slots of a match, from the floor on: a block, a hole (0) or `inStorage`. */
export class SlotMatch {
  slots: Int32Array = new Int32Array(64);
  length = 0;

  reset(length: number): void {
    if (length > this.slots.length) this.slots = new Int32Array(Math.max(length, this.slots.length * 2));
    this.length = length;
  }

  /** Blocks among the slots. */
  countHits(): number {
    let hits = 0;
    for (let i = 0; i < this.length; i++) if (this.slots[i] !== 0) hits++;
    return hits;
  }
}

export interface PrefixMatcher {
  /** A shorter prefix of a match is a match too. */
  readonly isPrefixClosed: boolean;
  /** Blocks in front of a boundary that are read when resuming from it. */
  readonly lookbackBlocks: number;
  /** Matches slots [begin, end) into `match`. */
  probe(lookup: BlockLookup, begin: number, end: number, match: SlotMatch): void;
}

/** Full history needs every block: it walks to the first miss. */
export class FullMatcher implements PrefixMatcher {
  readonly isPrefixClosed = true;
  readonly lookbackBlocks = 0;

  probe(lookup: BlockLookup, begin: number, end: number, match: SlotMatch): void {
    match.reset(Math.max(end - begin, 0));
    match.length = 0;
    for (let slot = begin; slot < end; slot++) {
      const block = lookup.blockAt(slot);
      if (block === 0) return;
      match.slots[match.length++] = block;
    }
  }
}

/**
 * A window needs the blocks that the next query reads: it looks for the rightmost boundary with enough hits
 * in front, or with a shorter run that begins at the floor. A state snapshot is a window of two tokens.
 */
export class SlidingMatcher implements PrefixMatcher {
  readonly isPrefixClosed = false;
  readonly lookbackBlocks: number;

  constructor(windowTokens: number, blockGranularity: number) {
    this.lookbackBlocks = Math.ceil((windowTokens - 1) / blockGranularity);
  }

  probe(lookup: BlockLookup, begin: number, end: number, match: SlotMatch): void {
    match.reset(Math.max(end - begin, 0));
    match.slots.fill(0, 0, match.length);
    if (this.lookbackBlocks === 0) return;
    let boundary = end;
    let slot = end;
    while (slot > begin && boundary - slot < this.lookbackBlocks) {
      const block = lookup.blockAt(--slot);
      match.slots[slot - begin] = block;
      if (block === 0) boundary = slot;
    }
    const isRunEnough = boundary - slot >= this.lookbackBlocks || boundary > begin;
    match.length = isRunEnough ? Math.max(boundary - begin, 0) : 0;
  }
}
