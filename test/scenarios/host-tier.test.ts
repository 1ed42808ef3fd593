/** Blocks on their way to Host memory and back. */
import { describe, expect } from "bun:test";
import type { ExecutionPlan } from "../../src/scheduler/plan";
import { Driver, extent, F, idsOf, rowOf, type Setup, shape, tableOf, tokens, W } from "../scheduler/driver";
import { scenario } from "./scenario";

const streaming = (more: Partial<Setup> = {}) =>
  new Driver({ P: 2, pool: 63, host: 6, disablePrefixCache: true, groups: [F(2), W(4, 2)], ...more });

const stored = (plan: ExecutionPlan) => plan.writeBacks.reduce((sum, op) => sum + op.numTransfers, 0);
const host = (d: Driver) => {
  const { hostCachedBlocks, hostEmptyLcmBlocks, hostPinnedBlocks } = d.scheduler.gauges();
  return { cached: hostCachedBlocks, empty: hostEmptyLcmBlocks, pinned: hostPinnedBlocks };
};

describe("streaming what becomes cached to Host", () => {
  scenario(356)("starts with the first decode and frees nothing before the acknowledgement", () => {
    const d = streaming();
    d.submit("a", tokens(8));
    expect(stored(d.step())).toBe(0);
    const decode = d.step();
    expect(stored(decode)).toBe(6);
    expect(host(d)).toMatchObject({ cached: 0, empty: 0 });
    const start = 63;
    d.finish("a");
    d.plan();
    expect(d.free).toBe(start - 6);
    d.ackWrites(decode);
    expect(host(d).cached).toBe(6);
    expect(d.free).toBe(start);
  });

  scenario(357, 358)("stores nothing twice and nothing that Host has no room for", () => {
    const d = streaming();
    d.submit("a", tokens(8));
    d.step();
    const decode = d.step();
    d.finish("a");
    d.submit("other", tokens(8, 300));
    d.step();
    expect(stored(d.step())).toBe(0);
    d.finish("other");
    d.plan();
    d.ackWrites(decode);
    d.submit("again", tokens(8));
    d.step();
    expect(stored(d.step())).toBe(0);
  });

  scenario(359)("replaces what Host has committed", () => {
    const d = streaming();
    d.submit("a", tokens(8));
    d.step();
    d.ackWrites(d.step());
    d.finish("a");
    d.submit("b", tokens(8, 300));
    d.step();
    const decode = d.step();
    expect(stored(decode)).toBe(6);
    expect(host(d).cached).toBe(0);
    d.ackWrites(decode);
    expect(host(d).cached).toBe(6);
  });

  scenario(360)("stores equal prompts of one round once", () => {
    const d = streaming({ host: 12 });
    d.submit("a", tokens(8));
    d.submit("b", tokens(8));
    d.step();
    const decode = d.step();
    expect(stored(decode)).toBe(6);
    expect(host(d).empty).toBe(6);
    d.expectSound();
  });

  scenario(361)("ignores a second acknowledgement", () => {
    const d = streaming();
    d.submit("a", tokens(8));
    d.step();
    const decode = d.step();
    d.ackWrites(decode);
    d.ackWrites(decode);
    expect(host(d).cached).toBe(6);
    d.expectSound();
  });
});

/** A prompt of four pages is on Host and no longer on the device. */
function churned(more: Partial<Setup> = {}): Driver {
  const d = new Driver({ P: 2, pool: 12, host: 32, groups: [F(2), W(4, 2)], ...more });
  d.submit("r1", tokens(8));
  d.runToEnd("r1", 2);
  expect(host(d)).toMatchObject({ cached: 6, empty: 26 });
  d.submit("churn", tokens(10, 300));
  d.runToEnd("churn", 2);
  expect(host(d).cached).toBe(13);
  return d;
}

describe("loading a prefix back from Host", () => {
  scenario(362)("happens in the plan whose forward needs it", () => {
    const d = churned();
    const before = d.free;
    d.submit("r2", [...tokens(8), 90, 91]);
    const plan = d.plan();
    expect(plan.loadBacks).toHaveLength(1);
    const [load] = plan.loadBacks;
    expect(load.numTransfers).toBe(6);
    expect(Array.from(load.groups)).toEqual([0, 0, 0, 0, 1, 1]);
    const table = [tableOf(plan, "r2", 0), tableOf(plan, "r2", 1)];
    expect(Array.from(load.destinations)).toEqual([...table[0].slice(0, 4), ...table[1].slice(2, 4)]);
    expect(extent(plan, "r2")).toEqual({ prefix: 8, input: 2, replay: 0 });
    expect(rowOf(plan, "r2")).toMatchObject({ prefillLength: 10, hostHitTokens: 8, deviceHitTokens: 0 });
    expect(table[0]).toHaveLength(6);
    expect(shape(table[1])).toBe("..xxxx");
    expect(host(d).pinned).toBe(6);
    expect(before - d.free).toBe(10);
    d.ackLoads(plan);
    expect(host(d).pinned).toBe(0);
    d.results(plan);
    expect(stored(d.step())).toBeGreaterThan(0);
  });

  scenario(363)("does not happen with nothing on Host", () => {
    const d = new Driver({ P: 2, pool: 12, host: 32, groups: [F(2), W(4, 2)] });
    d.submit("a", tokens(8));
    expect(d.plan().loadBacks).toEqual([]);
  });

  scenario(364)("pins nothing for a request that could not be admitted", () => {
    const d = churned();
    d.submit("holder", tokens(2, 700));
    d.step();
    d.submit("r2", [...tokens(8), 90, 91]);
    const refused = d.step();
    expect(idsOf(refused)).toEqual(["holder"]);
    expect(host(d).pinned).toBe(0);
    d.ackWrites(refused);
    d.finish("holder");
    const plan = d.plan();
    expect(idsOf(plan)).toEqual(["r2"]);
    expect(plan.loadBacks[0].numTransfers).toBe(6);
  });

  scenario(365, 367)("holds both ends until it is done, whatever becomes of the request", () => {
    const d = churned();
    const before = d.free;
    d.submit("r2", [...tokens(8), 90, 91]);
    const plan = d.plan();
    d.abort("r2");
    d.plan();
    expect(d.free).toBe(before - 6);
    expect(host(d).pinned).toBe(6);
    d.ackLoads(plan);
    expect([d.free, host(d).pinned]).toEqual([before, 0]);
    d.ackLoads(plan);
    d.expectSound();
  });

  scenario(366)("keeps another request waiting for the blocks that it fills", () => {
    const d = churned();
    d.submit("r2", [...tokens(8), 90, 91]);
    const plan = d.plan();
    d.abort("r2");
    d.submit("r3", tokens(8, 500));
    expect(idsOf(d.plan())).toEqual([]);
    d.ackLoads(plan);
    expect(idsOf(d.plan())).toEqual(["r3"]);
  });

  scenario(368)("continues with chunks behind the loaded prefix", () => {
    const d = new Driver({ P: 2, pool: 20, T: 4, host: 64, groups: [F(2), W(4, 2)] });
    d.submit("r1", tokens(8));
    d.runToEnd("r1", 2);
    const afterSeed = host(d).cached;
    expect(afterSeed).toBe(8);
    d.submit("churn", tokens(16, 300));
    d.runToEnd("churn", 4);
    d.submit("r2", [...tokens(8), ...tokens(8, 800)]);
    const before = d.free;
    const one = d.plan();
    expect(one.loadBacks[0].numTransfers).toBe(6);
    expect(extent(one, "r2")).toMatchObject({ prefix: 8, input: 4 });
    expect(rowOf(one, "r2").prefillLength).toBe(16);
    expect(before - d.free).toBe(10);
    d.results(one);
    d.ackWrites(one);
    const two = d.plan();
    expect(extent(two, "r2")).toMatchObject({ prefix: 12, input: 4 });
    d.ackWrites(two);
    expect(host(d).pinned).toBe(6);
    d.ackLoads(one);
    expect(host(d).pinned).toBe(0);
    d.expectSound();
  });
});
