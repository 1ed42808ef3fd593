/** What a number of tokens, rows or blocks may be that a caller gives. */
import { maxInt32 } from "../limits";

/** An int32 of at least 0. */
export function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= maxInt32;
}
