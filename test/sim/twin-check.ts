/** Feeds a naive scheduler with what the real one is fed and compares what both decide, to the last block. */
import type { ExecutionPlan } from "../../src/scheduler/plan";
import type { SchedulerSettings } from "../../src/scheduler/settings";
import type { TableMirror } from "../scheduler/table-mirror";
import { type NaiveRequest, NaiveScheduler } from "../twin/naive-scheduler";
import { loadDone, storeDone } from "../twin/naive-tiers";

export class TwinCheck {
  readonly naive: NaiveScheduler;
  readonly #settings: SchedulerSettings;
  /** Requests of each plan's rows as they were admitted, for results that land later. */
  readonly #rows = new Map<string, { request: NaiveRequest; isPrefill: boolean; epoch: number }>();

  constructor(settings: SchedulerSettings) {
    this.#settings = settings;
    this.naive = new NaiveScheduler(settings);
  }

  submit(id: string, prompt: readonly number[], maxNew: number, maxCached: number, namespace: string): void {
    this.naive.submit(id, prompt, maxNew, maxCached, namespace);
  }

  /** Builds the twin's plan and compares. */
  plan(plan: ExecutionPlan, mirror: TableMirror): void {
    const twin = this.naive.plan();
    const rows = [...twin.prefills, ...twin.decodes];
    const mine = plan.forward.rows.map((row) => [
      row.requestId,
      row.isPrefill,
      row.begin,
      row.size,
      row.replay,
    ]);
    expectEqual(
      "rows",
      mine,
      rows.map((row) => [row.id, row.prefill, row.begin, row.size, row.replay]),
    );
    for (const row of rows) {
      this.#rows.set(`${plan.planId} ${row.id}`, {
        request: row.request,
        isPrefill: row.prefill,
        epoch: row.request.epoch,
      });
      row.request.tables.forEach((table, group) => {
        const ids = table.slots.map((block) => block?.id ?? 0);
        expectEqual(`table ${group} of ${row.id}`, mirror.tableOf(group, row.request.slot), ids);
      });
    }
    plan.blocksToZero.forEach(({ ids, length }, group) => {
      expectEqual(`fresh blocks of group ${group}`, Array.from(ids.subarray(0, length)), twin.zero[group]);
    });
    this.#compareTransfers(plan, twin.stores, twin.loads);
  }

  landed(id: string, planId: number, tokens: readonly number[]): void {
    const row = this.#rows.get(`${planId} ${id}`);
    this.#rows.delete(`${planId} ${id}`);
    if (row === undefined || row.request.slot === 0 || row.request.epoch !== row.epoch) return;
    row.request.inFlight--;
    row.request.tokens.push(...tokens);
    if (this.#settings.decodeInputTokens > 1 && !row.isPrefill) row.request.reserve = tokens.length;
  }

  finish(id: string, kept: number | undefined): void {
    const request = this.#find(id);
    if (request !== undefined) this.naive.finish(request, kept);
  }

  abort(id: string): void {
    const request = this.#find(id);
    if (request !== undefined) this.naive.drop(request);
  }

  stored(opId: number): void {
    storeDone(this.naive.cache, opId);
  }

  loaded(opId: number, success = true): void {
    loadDone(this.naive.cache, opId, success);
  }

  retract(id: string): void {
    const request = this.#find(id);
    if (request !== undefined && request.slot > 0) this.naive.retract(request, false, false);
  }

  #find(id: string): NaiveRequest | undefined {
    return this.naive.requests.find((request) => request.id === id);
  }

  #compareTransfers(plan: ExecutionPlan, stores: readonly number[], loads: readonly number[]): void {
    const { cache } = this.naive;
    expectEqual(
      "operations",
      [...plan.writeBacks, ...plan.loadBacks].map((op) => op.opId),
      [...stores, ...loads],
    );
    for (const op of [...plan.writeBacks, ...plan.loadBacks]) {
      const twin = cache.stores.get(op.opId) ?? cache.loads.get(op.opId) ?? [];
      expectEqual(
        `operation ${op.opId}`,
        Array.from({ length: op.numTransfers }, (_, i) => [op.groups[i], op.sources[i], op.destinations[i]]),
        twin.map(({ group, source, destination }) => [group, source.id, destination.id]),
      );
    }
  }
}

function expectEqual(what: string, mine: unknown, twin: unknown): void {
  const [a, b] = [JSON.stringify(mine), JSON.stringify(twin)];
  if (a !== b) throw new Error(`${what} differ:\n  scheduler ${a}\n  twin      ${b}`);
}
