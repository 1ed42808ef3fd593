/**
 * Every short history of a tiny deployment: at most three requests of three shapes, four parents, and all
 * orders of what can happen. Each history is replayed from nothing on the scheduler and on its naive twin.
 */
import type { SchedulerConfig } from "../../src/scheduler/config";
import type { LoadBackOp, WriteBackOp } from "../../src/scheduler/plan";
import { Scheduler } from "../../src/scheduler/scheduler";
import { resolveSettings } from "../../src/scheduler/settings";
import { TableMirror } from "../scheduler/table-mirror";
import { TwinCheck } from "./twin-check";

export type Action =
  | "submitPage"
  | "submitLonger"
  | "submitTwoPages"
  | "plan"
  | "land"
  | "landWithStop"
  | "abort"
  | "storeDone"
  | "loadDone"
  | "loadFailed";

export const alphabet: readonly Action[] = [
  "submitPage",
  "submitLonger",
  "submitTwoPages",
  "plan",
  "land",
  "landWithStop",
  "abort",
  "storeDone",
  "loadDone",
  "loadFailed",
];

const maxRequests = 3;

interface Result {
  readonly planId: number;
  readonly rows: readonly { id: string; handle: number; count: number }[];
}

export class SmallWorld {
  readonly #scheduler: Scheduler;
  readonly #twin: TwinCheck;
  readonly #mirror: TableMirror;
  readonly #live = new Map<string, number>();
  readonly #results: Result[] = [];
  readonly #stores: WriteBackOp[] = [];
  readonly #loads: { op: LoadBackOp; ids: readonly string[] }[] = [];
  readonly #maxOut: number;
  #numSubmitted = 0;

  constructor(config: SchedulerConfig) {
    this.#scheduler = new Scheduler(config);
    this.#twin = new TwinCheck(resolveSettings(config));
    this.#mirror = new TableMirror(config.cacheGroups.length);
    this.#maxOut = config.overlapScheduleDepth ?? 0;
  }

  can(action: Action): boolean {
    switch (action) {
      case "submitPage":
      case "submitLonger":
      case "submitTwoPages":
        return this.#numSubmitted < maxRequests;
      case "plan":
        return this.#results.length <= this.#maxOut;
      case "land":
      case "landWithStop":
        return this.#results.length > 0;
      case "abort":
        return this.#live.size > 0;
      case "storeDone":
        return this.#stores.length > 0;
      default:
        return this.#loads.length > 0;
    }
  }

  /** Lets one thing happen and checks everything. */
  act(action: Action): void {
    switch (action) {
      case "submitPage":
        this.#submit([1, 2]);
        break;
      case "submitLonger":
        this.#submit([1, 2, 3]);
        break;
      case "submitTwoPages":
        this.#submit([1, 2, 4, 5, 6]);
        break;
      case "plan":
        this.#plan();
        break;
      case "land":
      case "landWithStop":
        this.#land(action === "landWithStop");
        break;
      case "abort":
        this.#abort(this.#live.keys().next().value as string);
        break;
      case "storeDone": {
        const { opId } = this.#stores.shift() as WriteBackOp;
        this.#scheduler.advance([{ kind: "writeBackDone", opId }]);
        this.#twin.stored(opId);
        break;
      }
      default:
        this.#loadDone(action === "loadDone");
    }
    const check = this.#scheduler.startIntegrityCheck();
    while (!check.step(1000));
  }

  #submit(prompt: number[]): void {
    const id = `r${this.#numSubmitted++}`;
    const [handle] = this.#scheduler.submit([{ requestId: id, tokens: Int32Array.from(prompt) }]);
    this.#twin.submit(id, prompt, 0, 0x7fff_ffff, "");
    this.#live.set(id, handle);
  }

  #plan(): void {
    const plan = this.#scheduler.nextExecutionPlan();
    this.#mirror.apply(plan);
    this.#twin.plan(plan, this.#mirror);
    this.#stores.push(...plan.writeBacks);
    const ids = plan.forward.rows.map((row) => row.requestId);
    for (const op of plan.loadBacks) this.#loads.push({ op, ids });
    if (ids.length === 0) return;
    const rows = plan.forward.rows.map((row) => ({
      id: row.requestId,
      handle: row.request,
      count: Number(!row.isPrefill || row.completesPrompt),
    }));
    this.#results.push({ planId: plan.planId, rows });
  }

  #land(stops: boolean): void {
    const { planId, rows } = this.#results.shift() as Result;
    const tokenCounts = Int32Array.from(rows, (row) => row.count);
    const tokens = Int32Array.from(
      rows.filter((row) => row.count > 0),
      () => 9,
    );
    this.#scheduler.advance([{ kind: "forwardResult", planId, tokenCounts, tokens }]);
    for (const { id, count } of rows) this.#twin.landed(id, planId, count > 0 ? [9] : []);
    if (!stops) return;
    for (const { id, handle } of rows) {
      if (!this.#live.has(id)) continue;
      if (!this.#scheduler.canFinish(handle)) this.#abort(id);
      else {
        this.#scheduler.advance([{ kind: "finish", request: handle }]);
        this.#twin.finish(id, undefined);
        this.#live.delete(id);
      }
    }
  }

  #abort(id: string): void {
    this.#scheduler.advance([{ kind: "abort", request: this.#live.get(id) as number }]);
    this.#twin.abort(id);
    this.#live.delete(id);
  }

  /** A failed load sends the requests of its plan back to the queue. */
  #loadDone(success: boolean): void {
    const { op, ids } = this.#loads.shift() as { op: LoadBackOp; ids: readonly string[] };
    if (!success) {
      for (const id of ids) {
        const request = this.#live.get(id);
        if (request === undefined) continue;
        this.#scheduler.advance([{ kind: "retract", request }]);
        this.#twin.retract(id);
      }
    }
    this.#scheduler.advance([{ kind: "loadBackDone", opId: op.opId, success }]);
    this.#twin.loaded(op.opId, success);
  }
}

/** Replays every history of `depth` actions and returns how many there were. */
export function explore(config: SchedulerConfig, depth: number): number {
  let count = 0;
  const visit = (history: readonly Action[]): void => {
    const world = new SmallWorld(config);
    for (const action of history) world.act(action);
    for (const action of alphabet) {
      if (!world.can(action)) continue;
      const next = [...history, action];
      count++;
      if (next.length < depth) visit(next);
      else replay(config, next);
    }
  };
  visit([]);
  return count;
}

function replay(config: SchedulerConfig, history: readonly Action[]): void {
  const world = new SmallWorld(config);
  try {
    for (const action of history) world.act(action);
  } catch (error) {
    throw new Error(`after ${history.join(", ")}: ${error instanceof Error ? error.message : error}`);
  }
}
