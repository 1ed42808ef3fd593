/** Reads the engine's log-probability rows; every number that leaves is finite. */
import type { LogprobRows } from "../../engine/protocol";

/** Stands for minus infinity, which JSON cannot say. */
export const lowestLogprob = -9999;

export interface TokenLogprob {
  readonly id: number;
  readonly logprob: number;
}

/** The token that stands at row `index`; `id` is known to the caller. */
export function chosenLogprob(rows: LogprobRows, index: number, id: number): TokenLogprob {
  return { id, logprob: finite(rows.chosenValues[index]) };
}

/** The alternatives at row `index`: most likely first, but the whole vocabulary in id order. */
export function alternatives(rows: LogprobRows, index: number): TokenLogprob[] {
  const isWholeVocabulary = rows.ids.length === 0;
  const begin = index * rows.count;
  return Array.from(rows.values.subarray(begin, begin + rows.count), (value, place) => ({
    id: isWholeVocabulary ? place : rows.ids[begin + place],
    logprob: finite(value),
  }));
}

/** Ranks, counted from 1, that belong to `alternatives`. */
export function alternativeRanks(rows: LogprobRows, index: number): Int32Array {
  const ranks = Int32Array.from({ length: rows.count }, (_, place) => place + 1);
  if (rows.ids.length > 0) return ranks;
  const values = rows.values.subarray(index * rows.count, (index + 1) * rows.count);
  const order = Int32Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
  order.forEach((id, place) => {
    ranks[id] = place + 1;
  });
  return ranks;
}

function finite(value: number): number {
  return Number.isNaN(value) ? lowestLogprob : Math.max(value, lowestLogprob);
}
