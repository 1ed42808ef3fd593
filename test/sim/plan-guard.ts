/**
 * Copies a plan when it was built and compares when its results land: until then nobody may have written
 * to it.
 */
import type { ExecutionPlan, ForwardBatch } from "../../src/scheduler/plan";

export class PlanGuard {
  readonly #plan: ExecutionPlan;
  readonly #text: string;

  constructor(plan: ExecutionPlan) {
    this.#plan = plan;
    this.#text = textOf(plan);
  }

  /** Throws when the plan is not what it was. */
  check(): void {
    if (textOf(this.#plan) !== this.#text)
      throw new Error(`plan ${this.#plan.planId} changed before its results`);
  }
}

function textOf(plan: ExecutionPlan): string {
  return JSON.stringify([
    plan.planId,
    [plan.forward, plan.remoteDecode, plan.remotePrefill].map(batchOf),
    plan.blocksToZero.map(({ ids, length }) => Array.from(ids.subarray(0, length))),
    [...plan.writeBacks, ...plan.loadBacks].map((op) => [op.opId, ...op.sources, ...op.destinations]),
  ]);
}

function batchOf({ rows, numPrefills, tableChanges }: ForwardBatch): unknown {
  return [
    numPrefills,
    rows.map((row) => [
      row.requestId,
      row.slot,
      row.begin,
      row.size,
      row.replay,
      row.internalStateBoundary,
      ...(row.isPrefill ? row.tokens.subarray(row.begin - row.replay, row.begin + row.size) : []),
    ]),
    tableChanges.map((changes) => {
      const numReplaced = changes.replacedOffsets[rows.length];
      const numAppended = changes.appendedOffsets[rows.length];
      return [
        Array.from(changes.replacedColumns.subarray(0, numReplaced)),
        Array.from(changes.replacedIds.subarray(0, numReplaced)),
        Array.from(changes.nulledEnds.subarray(0, rows.length)),
        Array.from(changes.appendedIds.subarray(0, numAppended)),
      ];
    }),
  ];
}
