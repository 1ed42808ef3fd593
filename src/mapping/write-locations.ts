/**
 * Which slot of the arena each new token's keys and values
 * go to: page * pageSize + offset, or -1 for nowhere.
 */
import { broken } from "../assert";
import type { SlotTables } from "./slot-tables";

/**
 * Writes the locations of positions [begin, begin + count) of one slot to `out` from `outOffset`. A hole
 * yields -1: nobody writes there. A position outside the table is a broken promise of the plan.
 */
export function writeLocations(
  tables: SlotTables,
  blockGranularity: number,
  slot: number,
  begin: number,
  count: number,
  out: Int32Array,
  outOffset: number,
): void {
  if (begin < 0 || begin + count > tables.lengthOf(slot) * blockGranularity)
    broken(`positions ${begin}..${begin + count - 1} of slot ${slot} lie outside its table`);
  for (let i = 0; i < count; i++) {
    const position = begin + i;
    const column = Math.floor(position / blockGranularity);
    const block = tables.blockAt(slot, column);
    out[outOffset + i] = block <= 0 ? -1 : block * blockGranularity + (position - column * blockGranularity);
  }
}
