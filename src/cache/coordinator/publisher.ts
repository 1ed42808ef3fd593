/**
 * Makes completed blocks reusable: decides which slots of which groups a completed range of prefix pages
 * covers and registers them. Copies nothing; a duplicate of a known block is exchanged for it in the table.
 */
import { refuse } from "../../assert";
import type { CacheGroup } from "../cache-group";
import type { BlockTable } from "../core/block-table";
import type { Int32List } from "../core/int32-list";
import { type BoundaryKind, boundaryKind } from "../prefix/prefix-cache-index";
import type { PrefixChain } from "../prefix/prefix-chain";
import type { TierTransferManager } from "../tier/tier-transfer-manager";
import type { CompletedPages, RequestProgress } from "./request-progress";

export class Publisher {
  readonly #groups: readonly CacheGroup[];
  readonly #prefixGranularity: number;
  /** Receives what newly became cached; undefined when nothing streams to Host. */
  readonly #streamTo: TierTransferManager | undefined;

  constructor(
    groups: readonly CacheGroup[],
    prefixGranularity: number,
    streamTo: TierTransferManager | undefined,
  ) {
    this.#groups = groups;
    this.#prefixGranularity = prefixGranularity;
    this.#streamTo = streamTo;
  }

  /** Publishes one group's share of the pages that a request completed. */
  publishCompleted(group: CacheGroup, table: BlockTable, progress: RequestProgress, epoch: number): void {
    const { completed, chain } = progress;
    if (!group.isMatched || completed.isEmpty) return;
    const r = group.geometry.blocksPerPrefixPage;
    const end = completed.numPages * r;
    if (group.spec.kind === "full") {
      this.#registerSlots(
        group,
        table,
        chain,
        completed.firstNewPage * r,
        end,
        completed.boundaryKind,
        epoch,
        completed,
      );
    } else if (group.spec.kind === "slidingWindow") {
      const begin = Math.max(0, end - group.matcher.lookbackBlocks);
      this.#publishRepeatWindow(group, table, progress, begin, epoch);
      this.#registerSlots(group, table, chain, begin, end, completed.boundaryKind, epoch, completed);
    } else this.#publishSnapshots(group, table, chain, completed, progress.stateBoundaries, epoch);
  }

  /**
   * Publishes slots [firstSlot page .. ) of every group
   * under the pages [firstPage, endPage); holes are skipped.
   */
  publishRange(
    tables: readonly BlockTable[],
    chain: PrefixChain,
    firstPage: number,
    endPage: number,
    kind: BoundaryKind,
    epoch: number,
  ): void {
    for (const group of this.#groups) {
      if (!group.isMatched) continue;
      const r = group.geometry.blocksPerPrefixPage;
      const table = tables[group.spec.group];
      if (firstPage < 0 || endPage * r > table.length) {
        const reason = `pages [${firstPage}, ${endPage}) are not all in a table of ${table.length} blocks`;
        refuse("pagesOutOfRange", reason);
      }
      this.#registerSlots(group, table, chain, firstPage * r, endPage * r, kind, epoch, undefined);
    }
  }

  /**
   * A prompt that ends at a page boundary resumes one page before it when it is sent again,
   * so what that page's window reads in front of the last one's is kept too.
   * It is not worth a place on Host.
   */
  #publishRepeatWindow(
    group: CacheGroup,
    table: BlockTable,
    { completed, chain }: RequestProgress,
    windowBegin: number,
    epoch: number,
  ): void {
    if (completed.repeatPage === 0) return;
    const end = completed.repeatPage * group.geometry.blocksPerPrefixPage;
    const begin = Math.max(0, end - group.matcher.lookbackBlocks);
    const last = Math.min(end, windowBegin, table.length);
    for (let slot = begin; slot < last; slot++) {
      const block = table.at(slot);
      const isNew = block !== 0 && !group.index.isCached(block);
      this.#registerSlots(group, table, chain, slot, slot + 1, completed.boundaryKind, epoch, undefined);
      if (isNew && table.at(slot) === block) group.index.setWorthHost(block, false);
    }
  }

  /**
   * Only boundaries at which a snapshot was proven to be
   * written count, and only those that mark a prompt's end.
   */
  #publishSnapshots(
    group: CacheGroup,
    table: BlockTable,
    chain: PrefixChain,
    completed: CompletedPages,
    boundaries: Int32List,
    epoch: number,
  ): void {
    if (completed.stateKind === boundaryKind.chunk) return;
    const r = group.geometry.blocksPerPrefixPage;
    for (let i = 0; i < boundaries.length; i++) {
      const page = boundaries.items[i] / this.#prefixGranularity;
      if (page <= completed.firstNewPage || page > completed.numPages) continue;
      this.#registerSlots(group, table, chain, page * r - 1, page * r, completed.stateKind, epoch, completed);
    }
  }

  #registerSlots(
    group: CacheGroup,
    table: BlockTable,
    chain: PrefixChain,
    begin: number,
    end: number,
    kind: BoundaryKind,
    epoch: number,
    completed: CompletedPages | undefined,
  ): void {
    const { index, allocator, geometry, spec } = group;
    const r = geometry.blocksPerPrefixPage;
    const streams = completed !== undefined && (completed.streamToHost || spec.kind === "slidingWindow");
    const streamTo = streams ? this.#streamTo : undefined;
    const last = Math.min(end, table.length);
    for (let slot = begin; slot < last; slot++) {
      const block = table.at(slot);
      if (block === 0) continue;
      const page = Math.floor(slot / r);
      const wasCached = index.isCached(block);
      const canonical = index.register(block, chain.words, page * 8, slot - page * r, kind, epoch, slot);
      if (streams) index.setWorthHost(canonical, true);
      if (canonical !== block) allocator.replace(table, slot, canonical);
      else if (!wasCached) streamTo?.queueStore(spec.group, block);
    }
  }
}
