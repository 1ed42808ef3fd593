/**
 * Drives a real Scheduler in few words for tests: groups by
 * one letter, requests by name, plans by what they carry.
 */
import { expect } from "bun:test";
import type { CacheGroupConfig, RequestSpec, SchedulerConfig } from "../../src/scheduler/config";
import type { SchedulerEvent } from "../../src/scheduler/events";
import type { ExecutionPlan, ForwardRow } from "../../src/scheduler/plan";
import { Scheduler } from "../../src/scheduler/scheduler";
import { TableMirror } from "./table-mirror";

type GroupShape = Omit<CacheGroupConfig, "groupId">;

/** Full history with block span g and K blocks a parent. */
export const F = (g: number, K = 1): GroupShape => ({ blockGranularity: g, cacheBlocksPerLcmBlock: K });

/** Sliding window of w tokens. */
export const W = (w: number, g: number, K = 1): GroupShape => ({
  blockGranularity: g,
  cacheBlocksPerLcmBlock: K,
  retention: "slidingWindow",
  slidingWindowTokens: w,
});

/** Snapshot state. */
export const M = (g: number, K = 1): GroupShape => ({
  blockGranularity: g,
  cacheBlocksPerLcmBlock: K,
  family: "state",
});

/** A sliding window that is regenerated instead of cached. */
export const R = (w: number, g: number, K = 1): GroupShape => ({ ...W(w, g, K), replayable: true });

export interface Setup extends Omit<Partial<SchedulerConfig>, "cacheGroups" | "numDeviceLcmBlocks"> {
  readonly P: number;
  readonly pool: number;
  readonly host?: number;
  readonly T?: number;
  readonly B?: number;
  readonly w?: number;
  readonly depth?: number;
  readonly groups: readonly GroupShape[];
}

/** The configuration behind a setup, with group ids g0, g1, ... */
export function configOf({ P, pool, host, T, B, w, depth, groups, ...rest }: Setup): SchedulerConfig {
  const role = rest.role ?? "fused";
  return {
    prefixGranularity: P,
    numDeviceLcmBlocks: pool,
    numHostLcmBlocks: host ?? 0,
    maxScheduledTokens: T ?? 64,
    maxBatchSize: B ?? 8,
    decodeInputTokens: w ?? 1,
    overlapScheduleDepth: depth ?? 0,
    ...rest,
    cacheGroups: groups.map((group, i) => ({
      groupId: `g${i}`,
      ...group,
      ...(role === "fused"
        ? {}
        : { transferPolicy: group.family === "state" ? "latestSnapshot" : "fullSuffix" }),
    })),
  };
}

/** Consecutive token ids. */
export function tokens(count: number, start = 1): number[] {
  return Array.from({ length: count }, (_, i) => start + i);
}

export class Driver {
  readonly scheduler: Scheduler;
  readonly config: SchedulerConfig;
  readonly mirror: TableMirror;
  plans = 0;

  constructor(setup: Setup) {
    this.config = configOf(setup);
    this.scheduler = new Scheduler(this.config);
    this.mirror = new TableMirror(this.config.cacheGroups.length);
  }

  submit(id: string, prompt: readonly number[], options: Partial<RequestSpec> = {}): number {
    return this.scheduler.submit([{ requestId: id, tokens: Int32Array.from(prompt), ...options }])[0];
  }

  /**
   * Builds a plan, applies its table changes to the mirror
   * and compares the mirror with the scheduler's tables.
   */
  plan(): ExecutionPlan {
    const plan = this.scheduler.nextExecutionPlan();
    this.plans++;
    this.mirror.apply(plan);
    this.mirror.expectAgrees(plan);
    return plan;
  }

  handle(id: string): number {
    const handle = this.scheduler.handleOf(id);
    if (handle === undefined) throw new Error(`no request ${id}`);
    return handle;
  }

  send(...events: SchedulerEvent[]): void {
    this.scheduler.advance(events);
  }

  /** One row's result. */
  result(id: string, ...produced: number[]): void {
    this.send({ kind: "extendResult", request: this.handle(id), tokens: produced });
  }

  /** Results for all rows of a plan: one token for each row that samples, drawn from `token`. */
  results(plan: ExecutionPlan, token: (id: string) => number = () => 7): void {
    const { rows } = plan.forward;
    if (rows.length === 0) return;
    const counts = rows.map((row) => Number(!row.isPrefill || row.completesPrompt));
    this.send({
      kind: "forwardResult",
      planId: plan.planId,
      tokenCounts: Int32Array.from(counts),
      tokens: Int32Array.from(rows.filter((_, i) => counts[i] > 0).map((row) => token(row.requestId))),
    });
  }

  /** Builds a plan and lands its results. */
  step(token?: (id: string) => number): ExecutionPlan {
    const plan = this.plan();
    this.results(plan, token);
    return plan;
  }

  finish(id: string): void {
    this.send({ kind: "finish", request: this.handle(id) });
  }

  abort(id: string): void {
    this.send({ kind: "abort", request: this.handle(id) });
  }

  ackWrites(plan: ExecutionPlan): void {
    for (const { opId } of plan.writeBacks) this.send({ kind: "writeBackDone", opId });
  }

  ackLoads(plan: ExecutionPlan, success = true): void {
    for (const { opId } of plan.loadBacks) this.send({ kind: "loadBackDone", opId, success });
  }

  /** Runs a request alone to `count` generated tokens and finishes it. */
  runToEnd(id: string, count = 1): void {
    for (let produced = 0; produced < count; ) {
      const plan = this.step();
      this.ackWrites(plan);
      this.ackLoads(plan);
      const row = plan.forward.rows.find((candidate) => candidate.requestId === id);
      if (row === undefined) throw new Error(`${id} got no row`);
      if (!row.isPrefill || row.completesPrompt) produced++;
    }
    this.finish(id);
    this.ackWrites(this.plan());
  }

  /** Drops everything that is cached and expects the whole pool back. */
  expectAllFree(): void {
    this.expectSound();
    const { availableLcmBlocks, activeLcmBlocks, totalLcmBlocks } = this.scheduler.gauges();
    expect({ availableLcmBlocks, activeLcmBlocks }).toEqual({
      availableLcmBlocks: totalLcmBlocks,
      activeLcmBlocks: 0,
    });
  }

  /** Every block is accounted for. */
  expectSound(): void {
    const check = this.scheduler.startIntegrityCheck();
    while (!check.step(1000));
  }

  get free(): number {
    return this.scheduler.gauges().availableLcmBlocks;
  }

  get waiting(): number {
    return this.scheduler.gauges().waiting;
  }

  get decoding(): number {
    return this.scheduler.gauges().decoding;
  }

  get prefilling(): number {
    return this.scheduler.gauges().prefilling;
  }
}

/** Request ids of a plan's forward rows. */
export function idsOf(plan: ExecutionPlan): string[] {
  return plan.forward.rows.map((row) => row.requestId);
}

export function rowOf(plan: ExecutionPlan, id: string): ForwardRow {
  const row = plan.forward.rows.find((candidate) => candidate.requestId === id);
  if (row === undefined) throw new Error(`plan ${plan.planId} has no row of ${id}`);
  return row;
}

/** A request's table in one group as the plan shows it, padding removed. */
export function tableOf(plan: ExecutionPlan, id: string, group = 0): number[] {
  const index = plan.forward.rows.findIndex((row) => row.requestId === id);
  return plan.blockTableRow(group, index).filter((block) => block !== -1);
}

/** Which slots hold a block. */
export function shape(table: readonly number[]): string {
  return table.map((block) => (block === 0 ? "." : "x")).join("");
}

export function zeroed(plan: ExecutionPlan, group = 0): number[] {
  const { ids, length } = plan.blocksToZero[group];
  return Array.from(ids.subarray(0, length));
}

/** What a prefill row reads and where its prompt continues. */
export function extent(plan: ExecutionPlan, id: string): { prefix: number; input: number; replay: number } {
  const row = rowOf(plan, id);
  return { prefix: row.begin - row.replay, input: row.inputLength, replay: row.replay };
}
