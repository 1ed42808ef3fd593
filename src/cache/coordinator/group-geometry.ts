/** The conversion between a group's tokens and its blocks; the only place that knows both. */
import { assert, broken } from "../../assert";
import type { CacheGroupSpec } from "../cache-group-spec";
import type { AcquirePlan } from "../core/acquire-plan";
import type { BlockTable } from "../core/block-table";
import type { GroupDemand } from "./group-demand";

export class GroupGeometry {
  readonly blockGranularity: number;
  /** Blocks of one prefix page. */
  readonly blocksPerPrefixPage: number;
  /**
   * Tokens a query sees; 0 when all are kept. A snapshot and the one that replaces it make a window of two.
   */
  readonly #windowTokens: number;

  constructor(spec: CacheGroupSpec, prefixGranularity: number) {
    assert(
      spec.blockGranularity > 0 && prefixGranularity % spec.blockGranularity === 0,
      `blocks of ${spec.blockGranularity} tokens do not divide a prefix step of ${prefixGranularity}`,
    );
    this.blockGranularity = spec.blockGranularity;
    this.blocksPerPrefixPage = prefixGranularity / spec.blockGranularity;
    this.#windowTokens = spec.kind === "full" ? 0 : spec.kind === "state" ? 2 : spec.windowTokens;
  }

  /** Slots that no query at or behind `numComputedTokens` reads any more. */
  expiredBlocksAt(numComputedTokens: number): number {
    if (this.#windowTokens === 0) return 0;
    const expiredTokens = numComputedTokens - this.#windowTokens + 1;
    return expiredTokens <= 0 ? 0 : Math.floor(expiredTokens / this.blockGranularity);
  }

  /** True when reclaiming at this frontier would free a block of the table. */
  hasReclaimable(table: BlockTable, numComputedTokens: number): boolean {
    if (this.#windowTokens === 0) return false;
    const end = Math.min(this.expiredBlocksAt(numComputedTokens), table.length);
    for (let slot = table.reclaimedBlocks; slot < end; slot++) if (table.at(slot) !== 0) return true;
    return false;
  }

  /** Works a demand out for a table that first gets `claimedBlocks` slots of a hit. */
  planAcquire(table: BlockTable, claimedBlocks: number, demand: GroupDemand, plan: AcquirePlan): void {
    const granularity = this.blockGranularity;
    const blocks = table.length + claimedBlocks;
    const available = table.availableTokens;
    if (demand.firstBlock < 0) {
      const wanted = demand.tokens + demand.reserveTokens;
      plan.numBlocks = wanted <= available ? 0 : Math.ceil((wanted - available) / granularity);
      plan.suffixStart = -1;
      plan.tableBlocksAfter = blocks + plan.numBlocks;
      plan.availableTokensAfter = available + plan.numBlocks * granularity - demand.tokens;
      return;
    }
    const end = Math.ceil((demand.tokens + demand.reserveTokens) / granularity);
    assert(available === 0, "a sparse suffix cannot use up room that a table has left");
    if (demand.tokens <= 0 || blocks > demand.firstBlock || demand.firstBlock >= end)
      broken(
        `a sparse suffix from block ${demand.firstBlock} to ${end} does not continue a table of ${blocks}`,
      );
    plan.numBlocks = end - demand.firstBlock;
    plan.suffixStart = demand.firstBlock;
    plan.tableBlocksAfter = end;
    plan.availableTokensAfter = end * granularity - demand.tokens;
  }
}
