/** How large a chunk is and what it demands, said from the rules alone. */
import type { SchedulerSettings } from "../../src/scheduler/settings";
import type { NaiveDemand } from "./naive-cache";

export function chunkSize(
  settings: SchedulerSettings,
  totalBudget: number,
  first: number,
  isFirst: boolean,
  left: number,
  promotion: number,
): number {
  const { prefixGranularity: P, replayWindowTokens: RW, hasStateGroup } = settings;
  const budget = totalBudget - (isFirst ? Math.min(RW, first) : 0);
  if (budget <= 0) return 0;
  const plain = Math.min(budget, left);
  let n = plain;
  if (hasStateGroup || promotion > 0) {
    if (promotion > first) n = Math.min(n, promotion - first);
    if (n < left) {
      const past = first % P;
      if (past !== 0) n = budget >= P - past ? P - past : 0;
      else n -= n % P;
    }
  }
  if (n === 0) return 0;
  const keep = (chunk: number) => {
    const rest = left - chunk;
    return RW === 0 || rest === 0 || rest >= RW ? chunk : Math.max(0, left - RW);
  };
  const kept = keep(n);
  return kept > 0 || n === plain ? kept : keep(plain);
}

/** What each group must hold for a chunk of a prompt. */
export function chunkDemands(
  settings: SchedulerSettings,

  begin: number,
  end: number,
  prefill: number,
  headroom: number,
  hit: number | undefined,
): NaiveDemand[] {
  const { prefixGranularity: P, replayWindowTokens: RW, decodeInputTokens: w } = settings;
  const completes = end === prefill;
  return settings.specs.map((spec): NaiveDemand => {
    const g = spec.blockGranularity;
    if (spec.kind === "state") {
      const m = Math.floor((completes ? end - 1 : end) / P) * P;
      const first = Math.floor(((m > begin ? m : end) - 1) / g);
      return { tokens: end, first, reserve: completes ? Math.max(g, w) : 0 };
    }
    const reserve = completes ? w : 0;
    if (spec.kind === "full") return { tokens: end - begin, first: -1, reserve: Math.max(reserve, headroom) };
    if (!spec.replayable || hit === undefined || hit === 0)
      return { tokens: end - begin, first: -1, reserve };
    return { tokens: end, first: Math.floor((hit - Math.min(RW, hit)) / g), reserve };
  });
}
