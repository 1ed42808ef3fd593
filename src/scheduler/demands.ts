/**
 * What a chunk demands of each group: which slots must exist when it runs, and the reserve beyond its end.
 */
import { GroupDemand } from "../cache/coordinator/group-demand";
import type { SchedulerSettings } from "./settings";

/**
 * The last position, a multiple of the prefix granularity,
 * at which the chunk (a, b] leaves a snapshot. May be <= a.
 */
export function lastStateBoundary(end: number, completesPrompt: boolean, prefixGranularity: number): number {
  const limit = completesPrompt ? end - 1 : end;
  return limit - (limit % prefixGranularity);
}

/** First slot of a state group that a local chunk (begin, end] materialises. */
export function firstStateBlock(
  begin: number,
  end: number,
  boundary: number,
  blockGranularity: number,
): number {
  return Math.floor(((boundary > begin ? boundary : end) - 1) / blockGranularity);
}

export class ChunkDemands {
  readonly demands: readonly GroupDemand[];
  readonly #settings: SchedulerSettings;

  constructor(settings: SchedulerSettings) {
    this.#settings = settings;
    this.demands = settings.specs.map(() => new GroupDemand());
  }

  /**
   * Tokens that a decode step adds to a group. A prefill worker hands over and computes no state any
   * more.
   */
  decodeTokens(group: number, tokens: number): number {
    return this.#settings.role === "prefill" && this.#settings.specs[group].kind === "state" ? 0 : tokens;
  }

  /** A decode step: `tokens` more in every group. */
  forDecode(tokens: number): readonly GroupDemand[] {
    for (let group = 0; group < this.demands.length; group++) {
      this.demands[group].denseGrowth(this.decodeTokens(group, tokens), 0);
    }
    return this.demands;
  }

  /** A chunk [begin, end) computed here. */
  forChunk(begin: number, end: number, completes: boolean, headroomTokens: number): readonly GroupDemand[] {
    const { specs, prefixGranularity, role } = this.#settings;
    const boundary = lastStateBoundary(end, completes, prefixGranularity);
    for (const spec of specs) {
      const reserve = this.#reserve(spec.group, completes, headroomTokens, role !== "prefill" && completes);
      const demand = this.demands[spec.group];
      if (spec.kind === "state") {
        demand.sparseSuffix(end, firstStateBlock(begin, end, boundary, spec.blockGranularity), reserve);
      } else demand.denseGrowth(end - begin, reserve);
    }
    return this.demands;
  }

  /** A whole prompt [hit, end) computed by a peer: only what a decode worker keeps is materialised. */
  forRemote(hit: number, end: number, headroomTokens: number): readonly GroupDemand[] {
    for (const spec of this.#settings.specs) {
      const reserve = this.#reserve(spec.group, true, headroomTokens, true);
      const demand = this.demands[spec.group];
      const g = spec.blockGranularity;
      if (spec.kind === "state") demand.sparseSuffix(end, Math.floor((end - 1) / g), reserve);
      else if (spec.kind === "slidingWindow") {
        const retained = Math.floor(Math.max(0, end - spec.windowTokens + 1) / g);
        const claimed = spec.replayable ? 0 : Math.floor(hit / g);
        demand.sparseSuffix(end, Math.max(claimed, retained), reserve);
      } else demand.denseGrowth(end - hit, reserve);
    }
    return this.demands;
  }

  #reserve(group: number, completes: boolean, headroomTokens: number, growsState: boolean): number {
    const width = this.#settings.decodeInputTokens;
    const spec = this.#settings.specs[group];
    if (spec.kind === "state") return growsState ? Math.max(spec.blockGranularity, width) : 0;
    const forDecode = completes ? width : 0;
    return spec.kind === "full" ? Math.max(forDecode, headroomTokens) : forDecode;
  }
}
