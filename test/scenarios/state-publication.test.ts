/** Snapshots that a prefill leaves behind, and which of them others may resume at. */
import { describe, expect } from "bun:test";
import type { ExecutionPlan } from "../../src/scheduler/plan";
import { Driver, extent, F, idsOf, M, rowOf, type Setup, shape, tableOf, tokens } from "../scheduler/driver";
import { scenario } from "./scenario";

const fixture = (more: Partial<Setup> = {}) =>
  new Driver({ P: 4, pool: 256, T: 8, B: 1, groups: [F(4), M(4), M(4), M(4)], ...more });

const submit = (d: Driver, id: string, prompt: readonly number[], maxNewTokens = 32) =>
  d.submit(id, prompt, { maxNewTokens });

/** Prefix that a new request with these tokens would resume from. */
function replayed(d: Driver, prompt: readonly number[]): number {
  d.submit("replay", prompt);
  let plan = d.plan();
  while (!idsOf(plan).includes("replay")) plan = d.step();
  const { prefix } = extent(plan, "replay");
  d.ackLoads(plan);
  d.abort("replay");
  d.ackWrites(d.plan());
  return prefix;
}

/** Prefills a prompt, acknowledging what goes to Host. */
function prefill(d: Driver, id: string): ExecutionPlan {
  let plan = d.step();
  d.ackWrites(plan);
  while (!rowOf(plan, id).completesPrompt) {
    plan = d.step();
    d.ackWrites(plan);
  }
  return plan;
}

function end(d: Driver, id: string): void {
  d.finish(id);
  d.ackWrites(d.plan());
}

const stateRows = (plan: ExecutionPlan, id: string) => [1, 2, 3].map((group) => tableOf(plan, id, group));
const stateStores = (plan: ExecutionPlan) =>
  plan.writeBacks.reduce((sum, op) => sum + Array.from(op.groups).filter((group) => group > 0).length, 0);
const resident = (d: Driver) => {
  const { totalLcmBlocks, emptyLcmBlocks } = d.scheduler.gauges();
  return totalLcmBlocks - emptyLcmBlocks;
};

describe("state that prefill leaves behind", () => {
  scenario(541)("is dropped chunk by chunk until the prompt's end", () => {
    const d = fixture();
    submit(d, "a", tokens(40));
    d.step();
    d.step();
    const plan = d.step();
    expect(extent(plan, "a").prefix).toBe(16);
    for (const row of stateRows(plan, "a")) {
      expect([row[1], row[3] > 0, row[5] > 0]).toEqual([0, true, true]);
      expect(row.filter((block) => block !== 0)).toHaveLength(2);
    }
  });

  scenario(542)("is reused by the same prompt's later chunks under pressure", () => {
    const d = fixture({ pool: 32, T: 4 });
    submit(d, "a", tokens(62), 4);
    const seen: number[][][] = [];
    let chunks = 0;
    let plan = d.step();
    for (; plan.forward.numPrefills > 0; plan = d.step()) {
      seen.push(stateRows(plan, "a"));
      chunks++;
    }
    expect(chunks).toBe(16);
    for (const row of seen[2]) expect(row[0]).toBe(0);
    for (const group of [0, 1, 2]) {
      const first = seen[0][group][0];
      expect(seen.slice(2).some((rows) => rows.flat().includes(first))).toBe(true);
    }
    end(d, "a");
    expect(d.scheduler.gauges().activeLcmBlocks).toBe(0);
    expect(replayed(d, tokens(5))).toBe(0);
    expect(replayed(d, [...tokens(62), 999])).toBe(60);
  });

  scenario(543)("survives at the prompt's end only", () => {
    for (const [length, snapshots] of [
      [24, 6],
      [26, 3],
      [30, 3],
    ]) {
      const d = fixture();
      submit(d, "a", tokens(length));
      prefill(d, "a");
      end(d, "a");
      expect([length, resident(d)]).toEqual([length, Math.floor(length / 4) + snapshots]);
      expect(replayed(d, tokens(9))).toBe(0);
      expect(replayed(d, [...tokens(length), 999])).toBe(Math.floor(length / 4) * 4);
    }
  });

  scenario(544)("goes to Host once", () => {
    for (const length of [26, 30]) {
      const d = fixture({ host: 64 });
      submit(d, "a", tokens(length));
      let stores = 0;
      const count = (plan: ExecutionPlan) => {
        stores += stateStores(plan);
        d.ackWrites(plan);
        return plan;
      };
      while (count(d.step()).forward.numPrefills > 0);
      d.finish("a");
      count(d.plan());
      expect(stores).toBe(3);
      expect(d.scheduler.gauges().hostCachedBlocks).toBe(Math.floor(length / 4) + 3);
      expect(d.scheduler.clearL1Cache()).toBe(true);
      expect(replayed(d, [...tokens(length), 999])).toBe(Math.floor(length / 4) * 4);
    }
  });

  scenario(545)("is not joined by decode's on Host when the request finishes", () => {
    const d = fixture({ host: 64 });
    submit(d, "a", tokens(6));
    d.step();
    const counts: number[] = [];
    for (let i = 0; i < 8; i++) {
      const plan = d.step();
      counts.push(stateStores(plan));
      d.ackWrites(plan);
    }
    d.finish("a");
    const last = d.plan();
    counts.push(stateStores(last));
    d.ackWrites(last);
    expect(counts).toEqual([3, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(d.scheduler.gauges().hostCachedBlocks).toBe(6);
    expect(d.scheduler.clearL1Cache()).toBe(true);
    const all = [...tokens(6), ...Array.from({ length: 8 }, () => 7), 999];
    expect(replayed(d, all.slice(0, 9))).toBe(4);
    expect(replayed(d, all)).toBe(4);
  });

  scenario(546)("expires in the request's own row while it decodes", () => {
    const d = fixture();
    submit(d, "a", tokens(6), 120);
    prefill(d, "a");
    let plan = d.step();
    for (let i = 0; i < 20; i++) plan = d.step();
    for (const row of stateRows(plan, "a")) expect(row[1]).toBe(0);
    d.abort("a");
    d.plan();
    expect(replayed(d, [...tokens(6), 7, 7, 7, 7, 7, 7])).toBe(4);
  });

  scenario(547)("is released with an aborted prompt", () => {
    const d = fixture();
    submit(d, "a", tokens(40));
    d.step();
    d.step();
    d.step();
    d.abort("a");
    d.plan();
    expect(resident(d)).toBe(4);
    expect(d.scheduler.gauges().activeLcmBlocks).toBe(0);
    expect(replayed(d, tokens(17))).toBe(0);
  });

  scenario(548)("is not joined by decode's when result and abort come together", () => {
    const d = fixture({ host: 64 });
    submit(d, "a", tokens(6));
    prefill(d, "a");
    d.ackWrites(d.step(() => 8));
    const plan = d.plan();
    d.ackWrites(plan);
    d.send(
      { kind: "extendResult", request: d.handle("a"), tokens: [10] },
      { kind: "abort", request: d.handle("a") },
    );
    const empty = d.plan();
    expect([empty.isEmpty, stateStores(empty)]).toEqual([true, 0]);
    expect([resident(d), d.scheduler.gauges().hostCachedBlocks]).toEqual([4, 4]);
    expect(replayed(d, [...tokens(6), 7, 8, 9])).toBe(4);
    expect(replayed(d, [...tokens(4), 9])).toBe(4);
  });

  scenario(549)("stays until its last scheduled reader has run", () => {
    const d = fixture({ depth: 1 });
    submit(d, "a", tokens(24));
    const one = stateRows(d.plan(), "a");
    const two = stateRows(d.plan(), "a");
    for (const group of [0, 1, 2]) expect(two[group][1]).toBe(one[group][1]);
    d.result("a");
    const three = stateRows(d.plan(), "a");
    for (const group of [0, 1, 2]) {
      expect(three[group][1]).toBe(0);
      expect(three[group][3]).toBe(two[group][3]);
    }
  });

  scenario(550, 551)("is not joined by speculation's, accepted or cut", () => {
    for (const accepted of [
      [3, 3],
      [3, 1],
    ]) {
      const d = fixture({ w: 3 });
      submit(d, "a", tokens(6));
      prefill(d, "a");
      const generated = [7];
      for (const count of accepted) {
        d.plan();
        const produced = tokens(count, 100 + generated.length);
        d.result("a", ...produced);
        d.send({ kind: "updateReserve", request: d.handle("a"), numTokens: count });
        generated.push(...produced);
      }
      end(d, "a");
      expect(replayed(d, [...tokens(6), ...generated, 999, 998, 997].slice(0, 9))).toBe(4);
      expect(replayed(d, [...tokens(6), ...generated, 999, 998, 997])).toBe(4);
    }
  });

  scenario(552)("goes to Host with the first decode alone under overlapped speculation", () => {
    const d = fixture({ host: 64, w: 3, depth: 1 });
    submit(d, "a", tokens(6));
    const counts: number[] = [];
    let previous = d.plan();
    for (let i = 0; i < 5; i++) {
      const plan = d.plan();
      counts.push(stateStores(plan));
      d.results(previous);
      d.ackWrites(plan);
      previous = plan;
    }
    expect(counts).toEqual([3, 0, 0, 0, 0]);
    d.abort("a");
    d.plan();
    expect(replayed(d, [...tokens(6), 7, 7, 7])).toBe(4);
  });

  scenario(553)("is not lost when one of two equal prompts is aborted", () => {
    const d = fixture({ w: 3, depth: 1, B: 3, T: 64 });
    submit(d, "a", tokens(6));
    submit(d, "b", tokens(6));
    d.step();
    d.step();
    d.abort("a");
    expect(idsOf(d.step())).toEqual(["b"]);
    end(d, "b");
    expect(d.scheduler.gauges().activeLcmBlocks).toBe(0);
    expect(replayed(d, [...tokens(6), 7, 7, 7])).toBe(4);
  });

  scenario(554)("keeps a few blocks a row over a long decode", () => {
    const d = fixture({ w: 3, T: 4 });
    submit(d, "a", tokens(6), 100);
    prefill(d, "a");
    for (let round = 0; round < 25; round++) {
      const plan = d.plan();
      const rows = stateRows(plan, "a");
      const live = rows.map((row) => row.filter((block) => block !== 0).length);
      expect(Math.max(...live)).toBeLessThanOrEqual(4);
      expect(live.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(15);
      if (round > 3) expect(shape(rows[0]).startsWith(".")).toBe(true);
      d.result("a", 7, 8, 9);
      d.send({ kind: "updateReserve", request: d.handle("a"), numTokens: 3 });
    }
  });

  scenario(555)("is saved from an incomplete prompt that is retracted", () => {
    const d = fixture({ host: 64, pool: 10, B: 2, T: 8, groups: [F(4), M(4)] });
    submit(d, "resident", tokens(8), 0);
    prefill(d, "resident");
    d.ackWrites(d.step());
    submit(d, "partial", tokens(20, 100), 0);
    let plan = d.step();
    d.ackWrites(plan);
    for (let i = 0; d.scheduler.gauges().retractions === 0 && i < 4; i++) {
      plan = d.step();
      if (d.scheduler.gauges().retractions === 0) d.ackWrites(plan);
    }
    expect([idsOf(plan), d.waiting]).toEqual([["resident"], 1]);
    expect(plan.writeBacks.map((op) => [op.sourcePinned, Array.from(op.groups)])).toEqual([
      [false, [0, 0, 1]],
    ]);
    d.ackWrites(plan);
    expect(d.scheduler.gauges().hostCachedBlocks).toBe(7);
    d.abort("resident");
    expect(d.scheduler.clearL1Cache()).toBe(true);
    const back = d.plan();
    expect(extent(back, "partial")).toEqual({ prefix: 8, input: 8, replay: 0 });
    expect(rowOf(back, "partial").prefillLength).toBe(20);
    expect(Array.from(back.loadBacks[0].groups)).toContain(1);
  });

  scenario(556)("is saved from a prompt that was just completed, as far as it was computed", () => {
    const d = fixture({
      host: 64,
      w: 5,
      pool: 16,
      T: 8,
      B: 3,
      enableMixedPrefillDecode: true,
      groups: [F(4), M(4)],
    });
    for (const [i, id] of ["a", "b", "c"].entries()) submit(d, id, tokens(8, 1 + 100 * i), 0);
    d.ackWrites(d.step());
    d.ackWrites(d.step());
    const plan = d.step();
    expect([idsOf(plan), d.waiting]).toEqual([["c"], 1]);
    expect(plan.writeBacks.map((op) => [op.sourcePinned, Array.from(op.groups)])).toEqual([
      [false, [0, 0, 1, 1]],
    ]);
    d.ackWrites(plan);
    expect(d.scheduler.gauges().hostCachedBlocks).toBe(4);
    for (const id of ["a", "b", "c"]) d.abort(id);
    d.ackWrites(d.plan());
    expect(d.scheduler.clearL1Cache()).toBe(true);
    expect(replayed(d, [...tokens(8), 999])).toBe(8);
  });

  scenario(557)("is what a retracted decoder comes back to, and it computes the rest", () => {
    for (const host of [64, 0]) {
      const d = fixture({ host, pool: 12, T: 64, B: 2, groups: [F(4), M(4)] });
      for (const [i, id] of ["a", "b"].entries()) submit(d, id, tokens(8, 1 + 100 * i), 0);
      let plan = d.step();
      for (let i = 0; d.waiting === 0 && i < 20; i++) {
        d.ackWrites(plan);
        plan = d.step();
      }
      expect(plan.writeBacks.map((op) => Array.from(op.groups))).toEqual(host > 0 ? [[0, 0, 0]] : []);
      d.ackWrites(plan);
      const total = d.scheduler.tokenCountOf(d.handle("a"));
      d.abort("b");
      expect(d.scheduler.clearL1Cache()).toBe(true);
      const back = d.step();
      const history = Math.floor((total - 1) / 4) * 4;
      expect(extent(back, "a")).toEqual({
        prefix: host > 0 ? 8 : 0,
        input: host > 0 ? history - 8 : total,
        replay: 0,
      });
      expect(back.loadBacks.map((op) => Array.from(op.groups))).toEqual(host > 0 ? [[0, 0, 1]] : []);
      d.ackLoads(back);
      d.ackWrites(back);
      if (host > 0) expect(rowOf(d.step(), "a")).toMatchObject({ begin: history, completesPrompt: true });
      expect(rowOf(d.step(), "a").isPrefill).toBe(false);
    }
  });
});
