/**
 * Keeps every slot's tables by applying plans' changes and nothing else, as an executor does, and compares.
 */
import { expect } from "bun:test";
import type { ExecutionPlan, ForwardBatch } from "../../src/scheduler/plan";

export class TableMirror {
  readonly #numGroups: number;
  /** [group][slot] */
  readonly tables: number[][][];

  constructor(numGroups: number) {
    this.#numGroups = numGroups;
    this.tables = Array.from({ length: numGroups }, () => []);
  }

  apply(plan: ExecutionPlan): void {
    for (const batch of [plan.forward, plan.remotePrefill, plan.remoteDecode]) this.#applyBatch(batch);
  }

  tableOf(group: number, slot: number): number[] {
    return this.tables[group][slot];
  }

  /** The mirrored tables of the plan's forward rows equal the scheduler's own. */
  expectAgrees(plan: ExecutionPlan): void {
    for (let group = 0; group < this.#numGroups; group++) {
      for (let i = 0; i < plan.forward.rows.length; i++) {
        const own = plan.blockTableRow(group, i).filter((block) => block !== -1);
        const mirrored = this.tables[group][plan.forward.rows[i].slot];
        if (own.length !== mirrored.length || own.some((block, column) => block !== mirrored[column])) {
          expect(mirrored).toEqual(own);
        }
      }
    }
  }

  #applyBatch(batch: ForwardBatch): void {
    for (let group = 0; group < this.#numGroups; group++) {
      const changes = batch.tableChanges[group];
      batch.rows.forEach((row, i) => {
        if (row.isFirstChunk) this.tables[group][row.slot] = [];
        const table = this.tables[group][row.slot];
        for (let k = changes.replacedOffsets[i]; k < changes.replacedOffsets[i + 1]; k++) {
          table[changes.replacedColumns[k]] = changes.replacedIds[k];
        }
        for (let c = changes.nulledBegins[i]; c < changes.nulledEnds[i]; c++) table[c] = 0;
        for (let k = changes.appendedOffsets[i]; k < changes.appendedOffsets[i + 1]; k++) {
          table.push(changes.appendedIds[k]);
        }
        expect(table.length).toBe(changes.tableLengths[i]);
      });
    }
  }
}
