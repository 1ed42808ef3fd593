/** The plans that are reused in turn, and one plan's storage. */
import type { BlockId } from "../cache/core/ids";
import { Int32List } from "../cache/core/int32-list";
import { assertWellFormed } from "../cache/tier/transfer-check";
import type { BlockIdList, ExecutionPlan, LoadBackOp, WriteBackOp } from "./plan";
import { BatchBuffer } from "./plan-rows";
import { requestState } from "./request";

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
  /** The driver sent all of its rows back before they were computed: no result will come. */
  isRecalled = false;

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
    this.isRecalled = false;
  }

  /** Notes whether all rows were sent back; to be asked before the next plan takes them up again. */
  noteRecall(): void {
    const { rows } = this.forward;
    for (let i = 0; i < rows.length; i++) {
      const { source, admissionSerial } = rows[i];
      if (source?.state !== requestState.retracted || source.admissionSerial !== admissionSerial) return;
      if (source.lastPlanId !== this.planId) return;
    }
    this.isRecalled = rows.length > 0;
  }

  /** Has rows whose results came in no one event. They may have come row by row, or nobody wants them. */
  get isUnanswered(): boolean {
    return !this.hasResults && this.forward.rows.length > 0;
  }

  /** Some row's result is still out and its request waits for it. */
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

/** What speaks for leaving a plan as it is. Those with the least go first. */
const claims = { none: 0, recalled: 1, unanswered: 2, awaited: 3 } as const;

export class PlanRing {
  /** The least recently started plan first. */
  readonly #plans: PlanBuffer[];
  readonly #overlapDepth: number;
  lastPlanId = 0;

  /** Holds the plans that may be out when one is built, that one, and one to look back at. */
  constructor(overlapDepth: number, numGroups: number) {
    this.#overlapDepth = overlapDepth;
    this.#plans = Array.from({ length: overlapDepth + 2 }, () => new PlanBuffer(numGroups));
  }

  /** The oldest plan that nobody needs any more, emptied for the next round. */
  next(): PlanBuffer {
    const plans = this.#plans;
    const last = plans.length - 1;
    plans[last].noteRecall();
    let position = last;
    let least: number = claims.awaited;
    let numLater = 0;
    for (let i = last; i >= 0; i--) {
      const claim = this.#claimOf(plans[i], numLater);
      if (claim <= least) {
        least = claim;
        position = i;
      }
      if (plans[i].forward.rows.length > 0 && !plans[i].isRecalled) numLater++;
    }
    const plan = plans[position];
    for (let i = position; i < last; i++) plans[i] = plans[i + 1];
    plans[last] = plan;
    plan.start(++this.lastPlanId);
    return plan;
  }

  /**
   * Requests may end or go back to the queue while their plan is out, and it stays all the same: the device
   * computes it. With more plans behind it than may be out together, its results have come.
   */
  #claimOf(plan: PlanBuffer, numLater: number): number {
    if (!plan.isUnanswered) return claims.none;
    if (plan.isAwaited) return claims.awaited;
    if (numLater > this.#overlapDepth) return claims.none;
    return plan.isRecalled ? claims.recalled : claims.unanswered;
  }

  /** A plan that was not overwritten yet. */
  find(planId: number): PlanBuffer | undefined {
    const plans = this.#plans;
    for (let i = 0; i < plans.length; i++) if (plans[i].planId === planId) return plans[i];
    return undefined;
  }
}
