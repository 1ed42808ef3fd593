/** What a benchmark hands back: its figures, and why some of its requests came to nothing. */
import type { Figures } from "./statistics";

export interface Measurement {
  /** Of the requests that were answered in full. */
  readonly figures: Figures;
  /** One reason for each request that failed, in order. */
  readonly failures: readonly string[];
}

/** Reasons that are told apart; a broken server may give each request its own. */
const maxReasons = 5;

/** A line for each reason, the first that was met first; empty without failures. */
export function describeFailures(failures: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const reason of failures) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const lines = [...counts]
    .slice(0, maxReasons)
    .map(
      ([reason, count]) => `granary: ${count} ${count === 1 ? "request" : "requests"} failed: ${reason}\n`,
    );
  const numOthers = counts.size - lines.length;
  if (numOthers > 0) lines.push(`granary: requests failed for ${numOthers} more reasons\n`);
  return lines.join("");
}
