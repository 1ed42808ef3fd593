/** The obvious block tables: a list of ids a slot, changed by copying. Twin of the mapping's flat arrays. */
import type { TableChange } from "./hand-made-plan";

export class NaiveTables {
  readonly #tables = new Map<number, readonly number[]>();

  tableOf(slot: number): readonly number[] {
    return this.#tables.get(slot) ?? [];
  }

  apply(slot: number, isFirstChunk: boolean, change: TableChange): void {
    const before = isFirstChunk ? [] : this.tableOf(slot);
    const replaced = before.map(
      (id, column) => change.replaced?.findLast(([changed]) => changed === column)?.[1] ?? id,
    );
    const [begin, end] = change.nulled ?? [0, 0];
    const nulled = replaced.map((id, column) => (column >= begin && column < end ? 0 : id));
    this.#tables.set(slot, [...nulled, ...(change.appended ?? [])]);
  }

  /** Where the row of a token lies, counted in tokens from the field's block 0; -1 in a hole. */
  locationOf(slot: number, position: number, blockGranularity: number): number {
    const block = this.tableOf(slot)[Math.floor(position / blockGranularity)];
    if (block === undefined) throw new Error(`no block at token ${position}`);
    return block === 0 ? -1 : block * blockGranularity + (position % blockGranularity);
  }
}
