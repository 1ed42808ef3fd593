/** The scheduler as whoever drives it sees it: handles, gauges, plans, misuse. */
import { describe, expect } from "bun:test";
import {
  Driver,
  extent,
  F,
  idsOf,
  M,
  rowOf,
  type Setup,
  shape,
  tableOf,
  tokens,
  W,
  zeroed,
} from "../scheduler/driver";
import { scenario } from "./scenario";

const plain = (more: Partial<Setup> = {}) =>
  new Driver({ P: 16, pool: 1023, T: 512, B: 8, groups: [F(16)], ...more });
const threeStates = (more: Partial<Setup> = {}) =>
  new Driver({ P: 2, pool: 32, groups: [F(2), M(2), M(2), M(2)], ...more });

describe("what a driver of the scheduler sees", () => {
  scenario(369)("are counters that follow a request through its life", () => {
    const d = plain();
    const counts = () => [d.waiting, d.prefilling, d.decoding];
    d.submit("a", tokens(4));
    expect(counts()).toEqual([1, 0, 0]);
    const prefill = d.plan();
    expect(counts()).toEqual([0, 1, 0]);
    expect(prefill.forward.numPrefills).toBe(1);
    d.results(prefill);
    const decode = d.step();
    expect([...counts(), decode.forward.numPrefills]).toEqual([0, 0, 1, 0]);
    const handle = d.handle("a");
    d.finish("a");
    d.plan();
    expect([d.scheduler.tokenCountOf(handle), d.scheduler.isLive(handle)]).toEqual([-1, false]);
  });

  scenario(370, 372)("is a token count that grows with results and not with chunks", () => {
    const d = plain({ T: 5 });
    d.submit("a", tokens(20));
    for (let i = 0; i < 3; i++) {
      d.step();
      expect(d.scheduler.tokenCountOf(d.handle("a"))).toBe(20);
    }
    d.step();
    expect(d.scheduler.tokenCountOf(d.handle("a"))).toBe(21);
  });

  scenario(
    371,
    373,
    380,
  )("are chunks in the order of the budget, residents first", () => {
    const d = plain({ T: 10 });
    d.submit("a", tokens(30));
    expect([0, 1, 2, 3].map(() => d.step().forward.numPrefills)).toEqual([1, 1, 1, 0]);
    const r = plain({ T: 5 });
    r.submit("r0", tokens(10));
    r.submit("r1", tokens(5, 50));
    expect([idsOf(r.step()), idsOf(r.step()), idsOf(r.step())]).toEqual([["r0"], ["r0"], ["r1"]]);
    const t = plain({ T: 8 });
    t.submit("a", tokens(20));
    expect([0, 1, 2].map(() => extent(t.step(), "a"))).toEqual([
      { prefix: 0, input: 8, replay: 0 },
      { prefix: 8, input: 8, replay: 0 },
      { prefix: 16, input: 4, replay: 0 },
    ]);
  });

  scenario(374)("are prompts handed to a decode worker once their token is there", () => {
    const d = plain({ P: 4, T: 8, w: 0, role: "prefill", groups: [F(4)] });
    for (const id of ["r0", "r1", "r2"]) {
      d.submit(id, tokens(4, id.charCodeAt(1) * 100));
      d.send({ kind: "bootstrapped", request: d.handle(id) });
    }
    const first = d.plan();
    expect([idsOf(first), first.forward.numPrefills]).toEqual([["r0", "r1"], 2]);
    d.result("r0", 5);
    d.result("r1", 6);
    const second = d.plan();
    expect(second.remoteDecode.rows.map((row) => [row.requestId, row.decodeInputId])).toEqual([
      ["r0", 5],
      ["r1", 6],
    ]);
    expect(idsOf(second)).toEqual(["r2"]);
  });

  scenario(375, 376)("is a step of one kind unless they mix", () => {
    for (const mixed of [false, true]) {
      const d = plain({ enableMixedPrefillDecode: mixed });
      d.submit("decoder", tokens(4));
      d.step();
      d.step();
      d.submit("new", tokens(4, 50));
      const plan = d.plan();
      expect(idsOf(plan)).toEqual(mixed ? ["new", "decoder"] : ["new"]);
      if (mixed) expect(tableOf(plan, "decoder")).toHaveLength(1);
    }
  });

  scenario(377, 378)("is a batch no larger than allowed, that goes on when one leaves it", () => {
    const d = plain({ B: 2 });
    for (let i = 0; i < 5; i++) d.submit(`r${i}`, tokens(4, i * 100 + 1));
    for (let i = 0; i < 4; i++) expect(d.step().forward.rows.length).toBeLessThanOrEqual(2);
    expect(idsOf(d.step())).toEqual(["r0", "r1"]);
    d.finish("r0");
    d.step();
    expect(idsOf(d.step())).toContain("r1");
  });

  scenario(379)("are the prompt's own tokens, from which the shifted ids are read", () => {
    const d = plain({ T: 5 });
    d.submit("a", tokens(15));
    const shifted = [0, 1, 2].map(() => {
      const row = rowOf(d.step(), "a");
      return Array.from({ length: row.size }, (_, i) => {
        const next = row.begin + i + 1;
        return next < row.prefillLength ? row.tokens[next] : -1;
      });
    });
    expect(shifted).toEqual([tokens(5, 2), tokens(5, 7), [...tokens(4, 12), -1]]);
  });

  scenario(381)("is a reserve that says how much room the next step takes", () => {
    const reserved = (reserves: number[], P = 16) => {
      const d = plain({ P, groups: [F(P)], disablePrefixCache: true });
      const before = d.submit("a", tokens(8));
      expect(() => d.send({ kind: "updateReserve", request: before, numTokens: 1 })).toThrow("not admitted");
      d.step();
      d.step();
      for (const numTokens of reserves) d.send({ kind: "updateReserve", request: before, numTokens });
      return tableOf(d.step(), "a").length;
    };
    expect(reserved([16])).toBe(2);
    expect(reserved([16, 1])).toBe(1);
    expect(reserved([20], 8)).toBeGreaterThan(2);
    const d = plain({ disablePrefixCache: true });
    d.submit("a", tokens(8));
    d.submit("b", tokens(8, 50));
    d.step();
    d.step();
    d.send({ kind: "updateReserve", request: d.handle("a"), numTokens: 16 });
    const plan = d.step();
    expect([tableOf(plan, "a").length, tableOf(plan, "b").length]).toEqual([2, 1]);
    d.send({ kind: "updateReserve", request: d.handle("a"), numTokens: 0 });
    expect(tableOf(d.step(), "a")).toHaveLength(2);
  });

  scenario(382)("is no input id for an ordinary decode", () => {
    const d = plain();
    d.submit("a", tokens(4));
    d.step();
    expect(rowOf(d.step(), "a").decodeInputId).toBe(-1);
  });

  scenario(383)("is a slot that stays with a request and then goes to the next", () => {
    const d = plain({ B: 2 });
    d.submit("r0", tokens(4));
    d.submit("r1", tokens(4, 50));
    const slots = (plan: ReturnType<Driver["plan"]>) => plan.forward.rows.map((row) => row.slot);
    expect(slots(d.step())).toEqual([1, 2]);
    expect(slots(d.step())).toEqual([1, 2]);
    d.finish("r0");
    d.submit("r2", tokens(4, 90));
    expect(slots(d.step())).toEqual([1]);
  });

  scenario(384)("is a hole where a window has passed", () => {
    const d = new Driver({ P: 2, pool: 31, groups: [F(2), W(4, 2)] });
    d.submit("a", tokens(4));
    for (let i = 0; i < 5; i++) d.step();
    expect(tableOf(d.step(), "a", 1)).toContain(0);
  });

  scenario(385)("is a recomputed end of prompts that is off by default", () => {
    const d = plain();
    expect(d.config.prefixReplayTokens).toBeUndefined();
    d.submit("a", tokens(33));
    d.runToEnd("a");
    d.submit("b", tokens(33));
    expect(extent(d.plan(), "b").prefix).toBe(32);
  });

  scenario(386, 558)("is a list of blocks to clear that names exactly the fresh ones", () => {
    const d = threeStates();
    d.submit("a", tokens(4));
    const plan = d.plan();
    const all = [0, 1, 2, 3].flatMap((group) => tableOf(plan, "a", group).filter((block) => block !== 0));
    expect(new Set(all).size).toBe(all.length);
    for (let group = 0; group < 4; group++) {
      const real = tableOf(plan, "a", group).filter((block) => block !== 0);
      expect(zeroed(plan, group).sort()).toEqual(real.sort());
    }
    d.abort("a");
    d.plan();
    expect(d.free).toBe(32);
  });

  scenario(559)("are gauges that add up while a request lives and after it", () => {
    const d = threeStates();
    const views = () => {
      const { emptyLcmBlocks, availableLcmBlocks, activeLcmBlocks, totalLcmBlocks } = d.scheduler.gauges();
      return { emptyLcmBlocks, availableLcmBlocks, activeLcmBlocks, totalLcmBlocks };
    };
    const idle = { emptyLcmBlocks: 32, availableLcmBlocks: 32, activeLcmBlocks: 0, totalLcmBlocks: 32 };
    expect(views()).toEqual(idle);
    d.submit("a", tokens(4));
    d.step();
    expect(views().activeLcmBlocks).toBeGreaterThan(0);
    expect(views().emptyLcmBlocks + views().activeLcmBlocks).toBe(32);
    d.finish("a");
    d.plan();
    expect(views()).toMatchObject({ availableLcmBlocks: 32, activeLcmBlocks: 0 });
    expect(views().emptyLcmBlocks).toBeLessThan(32);
  });

  scenario(387)("carries 131,072 tokens in the 98 blocks that the model predicts", () => {
    const long = (pool: number) =>
      new Driver({ P: 128, pool, T: 8192, B: 1, groups: [F(128, 12), M(128), M(128), M(128)] });
    expect(long(284).scheduler.maxSingleRequestTokens).toBe(417_792);
    expect(long(97).scheduler.maxSingleRequestTokens).toBeLessThan(131_072);
    const d = long(98);
    const limit = d.scheduler.maxSingleRequestTokens;
    expect(limit).toBeGreaterThanOrEqual(131_073);
    d.submit("a", tokens(131_072));
    let chunks = 0;
    while (d.step().forward.numPrefills > 0) chunks++;
    expect(chunks).toBeLessThanOrEqual(32);
    d.finish("a");
    d.plan();
    expect(d.free).toBe(98);
  });

  scenario(388)("is a batch that shrinks by retraction and recovers, state and all", () => {
    const d = threeStates();
    for (const id of ["a", "b", "c", "d"]) d.submit(id, tokens(2, id.charCodeAt(0) * 10));
    const views = () => {
      const { activeLcmBlocks, emptyLcmBlocks, availableLcmBlocks } = d.scheduler.gauges();
      return [activeLcmBlocks, emptyLcmBlocks, availableLcmBlocks];
    };
    let before = views();
    while (!d.step((id) => id.charCodeAt(0)).isEmpty) before = views();
    expect(before).toEqual([29, 3, 3]);
    const sizes = ["a", "b", "c", "d"].map((id) => d.scheduler.tokenCountOf(d.handle(id)));
    expect(sizes).toEqual([11, 9, 9, 9]);
    expect([views(), d.waiting, d.decoding]).toEqual([[21, 7, 11], 1, 3]);
    for (const id of ["b", "c", "d"]) d.finish(id);
    const back = d.plan();
    expect(extent(back, "a")).toEqual({ prefix: 0, input: 8, replay: 0 });
    expect(rowOf(back, "a").prefillLength).toBe(11);
    expect([0, 1].map((group) => shape(tableOf(back, "a", group)))).toEqual(["xxxx", "...x"]);
    expect([0, 1, 2, 3].reduce((sum, group) => sum + zeroed(back, group).length, 0)).toBe(7);
    expect(views()[0]).toBe(7);
    d.results(back);
    const rest = d.step();
    expect(extent(rest, "a")).toEqual({ prefix: 8, input: 3, replay: 0 });
    expect([0, 1].map((group) => tableOf(rest, "a", group).length)).toEqual([6, 7]);
    expect([0, 1, 2, 3].reduce((sum, group) => sum + zeroed(rest, group).length, 0)).toBe(11);
    expect([views()[0], views()[2]]).toEqual([18, 14]);
    d.finish("a");
    d.plan();
    expect(views()[0]).toBe(0);
    d.expectAllFree();
  });

  scenario(389)("overlaps a decode with a result that is still out, for every verify width", () => {
    for (const v of [1, 2, 4, 8]) {
      const d = new Driver({ P: 1, pool: 2 + 2 * v, w: v, depth: 1, groups: [F(1)] });
      d.submit("a", [1, 2]);
      d.plan();
      d.result("a", 3);
      expect(idsOf(d.plan())).toEqual(["a"]);
      expect(d.free).toBe(v);
    }
  });

  scenario(390)("refuses overlap depths that are not one step", () => {
    expect(plain().config.overlapScheduleDepth).toBe(0);
    for (const depth of [-1, 2]) expect(() => plain({ depth })).toThrow("overlapScheduleDepth");
    expect(() => plain({ depth: 1, w: 0 })).toThrow("decodeInputTokens");
    expect(() => plain({ w: -1 })).toThrow("decodeInputTokens");
  });

  scenario(391)("decodes on for ever in a window's own blocks", () => {
    const d = new Driver({ P: 2, pool: 7, groups: [W(4, 2)] });
    d.submit("a", tokens(8));
    for (let i = 0; i < 41; i++) expect(idsOf(d.step())).toEqual(["a"]);
    expect(d.scheduler.gauges().retractions).toBe(0);
  });

  scenario(392)("shares a small pool between windows without a deadlock", () => {
    const d = new Driver({ P: 2, pool: 11, disablePrefixCache: true, groups: [W(4, 2), W(4, 2)] });
    d.submit("a", tokens(8));
    d.submit("b", tokens(8, 50));
    const plan = d.step();
    expect(plan.forward.rows.length).toBeLessThanOrEqual(1);
  });
});
