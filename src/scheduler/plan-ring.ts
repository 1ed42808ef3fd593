/** The plans that are reused in turn, and one plan's storage. */
import type { BlockId } from "../cache/core/ids";
import { Int32List } from "../cache/core/int32-list";
import { assertWellFormed } from "../cache/tier/transfer-ops";
import type { BlockIdList, ExecutionPlan, LoadBackOp, WriteBackOp } from "./plan";
import { BatchBuffer } from "./plan-rows";

class IdListBuffer extends Int32List implements BlockIdList {
  get ids(): Int32Array {
    return this.items;
  }
}

export class PlanBuffer implements ExecutionPlan {
  planId = 0;
  readonly forward: BatchBuffer;
  readonly remoteDecode: BatchBuffer;
  readonly remotePrefill: BatchBuffer;
  readonly writeBacks: WriteBackOp[] = [];
  readonly blocksToZero: readonly IdListBuffer[];
  readonly loadBacks: LoadBackOp[] = [];
  isEmpty = true;
  /** The forward batch's results came in one event. */
  hasResults = false;

  constructor(numGroups: number) {
    this.forward = new BatchBuffer(numGroups);
    this.remoteDecode = new BatchBuffer(numGroups);
    this.remotePrefill = new BatchBuffer(numGroups);
    this.blocksToZero = Array.from({ length: numGroups }, () => new IdListBuffer());
  }

  start(planId: number): void {
    this.planId = planId;
    this.forward.start(planId);
    this.remoteDecode.start(planId);
    this.remotePrefill.start(planId);
    this.writeBacks.length = 0;
    this.loadBacks.length = 0;
    for (const list of this.blocksToZero) list.clear();
    this.hasResults = false;
  }

  /** Some row's result is still out, so that the plan must stay as it is. */
  get isAwaited(): boolean {
    if (this.hasResults) return false;
    const { rows } = this.forward;
    for (let i = 0; i < rows.length; i++) {
      const { source, admissionSerial } = rows[i];
      const isSameAdmission = source?.holdsBlocks === true && source.admissionSerial === admissionSerial;
      if (isSameAdmission && source.resultsInFlight > 0) return true;
    }
    return false;
  }

  /** Something for an executor or a peer to do, write-backs apart. */
  get hasRows(): boolean {
    return this.forward.size + this.remoteDecode.size + this.remotePrefill.size > 0;
  }

  finish(): void {
    this.forward.finish();
    this.remoteDecode.finish();
    this.remotePrefill.finish();
    if (this.writeBacks.length > 0) assertWellFormed(this.writeBacks);
    if (this.loadBacks.length > 0) assertWellFormed(this.loadBacks);
    this.isEmpty = !this.hasRows && this.writeBacks.length === 0 && this.loadBacks.length === 0;
  }

  blockTableRow(group: number, row: number): BlockId[] {
    const tables = this.forward.rows.map(({ source }) => source?.tables[group]);
    const width = Math.max(0, ...tables.map((table) => table?.length ?? 0));
    const table = tables[row];
    return Array.from({ length: width }, (_, column) =>
      table !== undefined && column < table.length ? table.at(column) : -1,
    );
  }
}

export class PlanRing {
  /** The least recently started plan first. */
  readonly #plans: PlanBuffer[];
  lastPlanId = 0;

  constructor(numPlans: number, numGroups: number) {
    this.#plans = Array.from({ length: numPlans }, () => new PlanBuffer(numGroups));
  }

  /** The oldest plan that nobody waits for, emptied for the next round. */
  next(): PlanBuffer {
    const plans = this.#plans;
    const last = plans.length - 1;
    let position = 0;
    while (position <= last && plans[position].isAwaited) position++;
    if (position > last) position = 0;
    const plan = plans[position];
    for (let i = position; i < last; i++) plans[i] = plans[i + 1];
    plans[last] = plan;
    plan.start(++this.lastPlanId);
    return plan;
  }

  /** A plan that was not overwritten yet. */
  find(planId: number): PlanBuffer | undefined {
    const plans = this.#plans;
    for (let i = 0; i < plans.length; i++) if (plans[i].planId === planId) return plans[i];
    return undefined;
  }
}
