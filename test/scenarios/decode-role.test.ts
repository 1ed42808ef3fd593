/** The decode side of a disaggregated deployment: destinations, landings, and what state adds to them. */
import { describe, expect } from "bun:test";
import type { ExecutionPlan } from "../../src/scheduler/plan";
import { Driver, F, idsOf, M, rowOf, type Setup, shape, tableOf, tokens, zeroed } from "../scheduler/driver";
import { scenario } from "./scenario";

const decoder = (more: Partial<Setup> = {}) =>
  new Driver({
    P: 2,
    pool: 3,
    host: 3,
    T: 2,
    B: 1,
    role: "decode",
    disablePrefixCache: true,
    groups: [F(2)],
    ...more,
  });
const withHost = (more: Partial<Setup> = {}) => decoder({ pool: 4, disablePrefixCache: false, ...more });

function boot(d: Driver, id: string, prompt: readonly number[], maxNewTokens = 0): void {
  d.submit(id, prompt, { maxNewTokens });
  d.send({ kind: "bootstrapped", request: d.handle(id) });
}

function land(d: Driver, id: string, token: number): void {
  d.send({ kind: "remotePrefillDone", request: d.handle(id), token });
}

const remoteIds = (plan: ExecutionPlan) => plan.remotePrefill.rows.map((row) => row.requestId);

/** One request that decodes here after a peer computed its two pages. */
function driveRunning(d: Driver, pages = 2): void {
  boot(d, "running", tokens(pages * 2));
  expect(remoteIds(d.plan())).toEqual(["running"]);
  land(d, "running", 42);
  expect(idsOf(d.plan())).toEqual(["running"]);
  d.result("running", 43);
}

/** Plans on, one token a step, until the running request is retracted; returns that plan. */
function untilRetracted(d: Driver): ExecutionPlan {
  for (let token = 44; token < 52; token++) {
    const plan = d.plan();
    if (d.scheduler.gauges().retractions > 0) return plan;
    if (idsOf(plan).includes("running")) d.result("running", token);
  }
  throw new Error("nothing was retracted");
}

const blockIds = (d: Driver, ...ids: string[]) => {
  for (const [i, id] of ids.entries()) boot(d, id, tokens(4, 500 + 100 * i));
};

describe("the decode role", () => {
  scenario(281)("decodes one request and admits another for a peer in the same plan", () => {
    const d = decoder({ pool: 4, B: 2 });
    boot(d, "a", tokens(2));
    d.plan();
    land(d, "a", 42);
    boot(d, "b", tokens(2, 50));
    const plan = d.plan();
    expect([idsOf(plan), remoteIds(plan), plan.forward.numPrefills]).toEqual([["a"], ["b"], 0]);
    expect(d.decoding).toBe(1);
    expect(rowOf(plan, "a").decodeInputId).toBe(42);
  });

  scenario(282)("admits one prompt a plan and reserves nothing for a retraction to come", () => {
    const d = decoder({ pool: 15, host: 5, B: 3, disablePrefixCache: false });
    for (const [id, generated] of [
      ["a", 6],
      ["b", 2],
      ["c", 2],
    ] as const) {
      boot(d, id, tokens(4, id.charCodeAt(0) * 10), generated);
    }
    expect([0, 1, 2].map(() => remoteIds(d.plan()))).toEqual([["a"], ["b"], ["c"]]);
    expect(d.waiting).toBe(0);
  });

  scenario(283)("moves nothing between tiers on its way in", () => {
    const d = withHost();
    boot(d, "r0", tokens(4));
    const admitted = d.plan();
    land(d, "r0", 42);
    const decode = d.plan();
    for (const plan of [admitted, decode]) expect([plan.writeBacks, plan.loadBacks]).toEqual([[], []]);
    expect([admitted.remotePrefill.rows.length, decode.forward.rows.length]).toEqual([1, 1]);
  });

  scenario(284)("forgets a victim that is aborted", () => {
    const d = withHost();
    driveRunning(d);
    blockIds(d, "blocked");
    d.ackWrites(untilRetracted(d));
    expect(d.waiting).toBe(1);
    d.abort("running");
    expect(d.waiting).toBe(0);
    expect(d.plan().loadBacks).toEqual([]);
  });

  scenario(
    285,
    286,
    291,
  )("admits the blocked prompt in the plan that retracts, and loads the victim back", () => {
    const d = withHost();
    driveRunning(d);
    blockIds(d, "blocked");
    const plan = untilRetracted(d);
    expect(remoteIds(plan)).toEqual(["blocked"]);
    expect(plan.writeBacks.map((op) => op.sourcePinned)).toEqual([false]);
    expect(plan.loadBacks).toEqual([]);
    expect([d.waiting, d.free, d.scheduler.gauges().hostEmptyLcmBlocks]).toEqual([1, 1, 0]);
    d.ackWrites(plan);
    d.ackWrites(plan);
    expect([d.free, d.scheduler.gauges().hostCachedBlocks]).toEqual([1, 3]);
    land(d, "blocked", 142);
    d.abort("blocked");
    const back = d.plan();
    expect([idsOf(back), back.loadBacks.length, d.decoding]).toEqual([["running"], 1, 0]);
    expect(rowOf(back, "running").isPrefill).toBe(true);
    d.ackLoads(back);
    d.expectSound();
  });

  scenario(287)("finds its own snapshot even with the prefix cache off", () => {
    const d = withHost({ disablePrefixCache: true });
    driveRunning(d);
    blockIds(d, "blocked");
    d.ackWrites(untilRetracted(d));
    land(d, "blocked", 142);
    d.abort("blocked");
    expect(d.plan().loadBacks).toHaveLength(1);
  });

  scenario(288)("waits while the only slot belongs to a prompt at a peer", () => {
    const d = withHost();
    driveRunning(d);
    blockIds(d, "blocked-a", "blocked-b");
    expect(remoteIds(untilRetracted(d))).toEqual(["blocked-a"]);
    const next = d.plan();
    expect([remoteIds(next), idsOf(next)]).toEqual([[], []]);
  });

  scenario(289)("recovers alone in its batch, chunk by chunk", () => {
    const d = withHost({ pool: 5, B: 2 });
    driveRunning(d);
    blockIds(d, "blocked-a");
    d.ackWrites(untilRetracted(d));
    land(d, "blocked-a", 142);
    d.abort("blocked-a");
    blockIds(d, "blocked-b");
    for (let chunk = 0; chunk < 2; chunk++) {
      const plan = d.plan();
      expect([idsOf(plan), remoteIds(plan)]).toEqual([["running"], []]);
      expect(rowOf(plan, "running").isPrefill).toBe(true);
      expect(d.scheduler.isTransferInFlight(d.handle("running"))).toBe(false);
      d.ackLoads(plan);
      d.result("running", ...(rowOf(plan, "running").completesPrompt ? [60] : []));
    }
  });

  scenario(335)(
    "starts decoding with the reserve of a verify step, not with what an earlier life had left",
    () => {
      const d = decoder({ pool: 20, w: 3, T: 8, B: 2 });
      boot(d, "a", tokens(4));
      d.plan();
      land(d, "a", 42);
      const plan = d.plan();
      expect(rowOf(plan, "a").size).toBe(3);
      expect(tableOf(plan, "a").length).toBe(Math.ceil((4 + 3) / 2));
    },
  );

  scenario(290)("recovers by computing when there is no Host", () => {
    const d = decoder({ host: 0, disablePrefixCache: false });
    driveRunning(d, 1);
    boot(d, "blocked", tokens(2, 500));
    const plan = untilRetracted(d);
    expect([remoteIds(plan), plan.writeBacks, d.waiting]).toEqual([["blocked"], [], 1]);
    land(d, "blocked", 142);
    d.abort("blocked");
    const back = d.plan();
    expect([idsOf(back), back.loadBacks]).toEqual([["running"], []]);
    expect(rowOf(back, "running").inputLength).toBeGreaterThan(0);
  });
});

const sparse = (more: Partial<Setup> = {}) =>
  new Driver({ P: 2, pool: 6, host: 31, T: 2, role: "decode", groups: [F(2, 2), M(2)], ...more });

/** The remote row's table, kept by applying table changes as the executor does. */
const remoteTable = (d: Driver, plan: ExecutionPlan, group: number) =>
  d.mirror.tableOf(group, plan.remotePrefill.rows[0].slot);

describe("destinations for a prompt with state", () => {
  scenario(293, 294)("are all the history and only the last snapshot with its growth", () => {
    const d = sparse();
    boot(d, "r0", tokens(8));
    const plan = d.plan();
    const full = [...remoteTable(d, plan, 0)];
    const state = [...remoteTable(d, plan, 1)];
    expect([shape(full), shape(state)]).toEqual(["xxxxx", "...xx"]);
    expect([zeroed(plan, 0), zeroed(plan, 1)]).toEqual([full, state.slice(3)]);
    expect(d.free).toBe(1);
    expect(d.scheduler.isTransferInFlight(d.handle("r0"))).toBe(true);
    land(d, "r0", 42);
    const decode = d.plan();
    expect(tableOf(decode, "r0", 1)).toEqual(state);
    d.send({ kind: "transferSucceeded", request: d.handle("r0") });
    d.plan();
    expect(d.free).toBe(6);
  });

  scenario(295)("follow the state group's own span", () => {
    const d = sparse({ groups: [F(2, 2), M(1, 2)] });
    boot(d, "r0", tokens(8));
    expect(shape(remoteTable(d, d.plan(), 1))).toBe(".......xx");
  });

  scenario(296)("reuse history of an earlier prompt and leave its state out", () => {
    const d = sparse();
    boot(d, "r0", tokens(8));
    d.plan();
    land(d, "r0", 42);
    d.plan();
    d.send({ kind: "transferSucceeded", request: d.handle("r0") });
    boot(d, "r1", tokens(8));
    const plan = d.plan();
    expect(plan.remotePrefill.rows.map((row) => row.inputLength)).toEqual([2]);
    expect([shape(remoteTable(d, plan, 0)), shape(remoteTable(d, plan, 1))]).toEqual(["xxxxx", "...xx"]);
  });

  scenario(297)("grow by one snapshot when decoding has used the first", () => {
    const d = sparse({ pool: 7, disablePrefixCache: true });
    boot(d, "r0", tokens(8));
    d.plan();
    land(d, "r0", 42);
    const lengths: number[] = [];
    for (const token of [43, 44, 45]) {
      const plan = d.plan();
      const table = tableOf(plan, "r0", 1);
      lengths.push(table.length);
      expect(table.at(-1)).toBeGreaterThan(0);
      d.result("r0", token);
    }
    expect(lengths).toEqual([5, 5, 6]);
  });

  scenario(427)("secure the room that decoding needs for every prompt that is admitted", () => {
    const d = new Driver({ P: 2, pool: 32, role: "decode", groups: [F(2), M(2), M(2), M(2)] });
    const ids = ["a", "b", "c", "d", "e"];
    for (const id of ids) boot(d, id, tokens(2, id.charCodeAt(0) * 10), 4);
    const takes: number[] = [];
    for (let i = 0; i < 3; i++) {
      const before = d.free;
      const plan = d.plan();
      expect(remoteIds(plan)).toHaveLength(1);
      expect(remoteTable(d, plan, 1)).toHaveLength(2);
      takes.push(before - d.free);
    }
    expect(takes).toEqual([9, 9, 9]);
    expect(remoteIds(d.plan())).toEqual([]);
    const pending = new Set(ids);
    for (const id of ["a", "b", "c"]) land(d, id, 5);
    for (let round = 0; pending.size > 0 && round < 40; round++) {
      const plan = d.plan();
      for (const id of idsOf(plan)) {
        d.result(id, 6);
        if (d.scheduler.tokenCountOf(d.handle(id)) === 6) {
          d.finish(id);
          pending.delete(id);
        }
      }
      for (const id of remoteIds(plan)) land(d, id, 5);
    }
    expect([pending.size, d.scheduler.gauges().retractions]).toEqual([0, 0]);
    d.plan();
    expect(d.scheduler.gauges().activeLcmBlocks).toBe(0);
  });
});

describe("the fused role with state", () => {
  scenario(428)("secures the same room", () => {
    for (const [length, stateBlocks] of [
      [2, 2],
      [4, 3],
    ]) {
      const d = new Driver({ P: 2, pool: length === 2 ? 32 : 40, groups: [F(2), M(2), M(2), M(2)] });
      const ids = ["a", "b", "c", "d", "e", "f"];
      for (const id of ids) d.submit(id, tokens(length, id.charCodeAt(0) * 10), { maxNewTokens: 4 });
      const first = d.plan();
      expect(idsOf(first)).toEqual(["a", "b", "c"]);
      const state = tableOf(first, "a", 1);
      expect(state.filter((block) => block !== 0)).toHaveLength(stateBlocks);
      d.results(first);
      const firstDecode = d.step();
      if (length === 4) expect(tableOf(firstDecode, "a", 1).slice(-2)).toEqual(state.slice(-2));
      const pending = new Set(ids);
      for (let round = 0; pending.size > 0 && round < 60; round++) {
        for (const id of [...pending]) {
          if (d.scheduler.tokenCountOf(d.handle(id)) >= length + 4) {
            d.finish(id);
            pending.delete(id);
          }
        }
        d.step();
      }
      expect(pending.size).toBe(0);
    }
  });

  scenario(425)("stores nothing of a prompt of one token", () => {
    for (const end of ["finish", "abort"] as const) {
      const d = new Driver({ P: 2, pool: 15, host: 15, groups: [F(2)] });
      d.submit("a", [1]);
      d.step();
      d[end]("a");
      expect(d.plan().writeBacks).toEqual([]);
    }
  });

  scenario(426)(
    "stores history and the prompt's snapshots with the first decode, history alone at the end",
    () => {
      const d = new Driver({ P: 2, pool: 31, host: 15, groups: [F(2), M(2), M(2), M(2)] });
      d.submit("a", tokens(5));
      d.step(() => 6);
      const decode = d.step(() => 7);
      expect(decode.writeBacks.map((op) => Array.from(op.groups))).toEqual([[0, 0, 1, 2, 3]]);
      d.ackWrites(decode);
      expect(d.scheduler.gauges().hostCachedBlocks).toBe(5);
      d.finish("a");
      const end = d.plan();
      expect(end.writeBacks.map((op) => Array.from(op.groups))).toEqual([[0]]);
      d.ackWrites(end);
      expect(d.scheduler.gauges().hostCachedBlocks).toBe(6);
    },
  );
});
