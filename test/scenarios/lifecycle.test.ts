/** A request from submission to its end, in every kind of group. */
import { describe, expect } from "bun:test";
import type { ExecutionPlan } from "../../src/scheduler/plan";
import { Driver, extent, F, idsOf, rowOf, shape, tableOf, tokens, W, zeroed } from "../scheduler/driver";
import { scenario } from "./scenario";

const fixture = () =>
  new Driver({
    P: 2,
    pool: 31,
    T: 64,
    B: 8,
    disableL2Cache: true,
    disablePrefixCache: true,
    groups: [F(2, 2), W(4, 2)],
  });

describe("a request's life", () => {
  scenario(261)("begins in the queue", () => {
    const d = fixture();
    d.submit("a", tokens(4));
    expect([d.waiting, d.decoding]).toEqual([1, 0]);
  });

  scenario(262)("passes through prefill and decode and gives everything back", () => {
    const d = fixture();
    d.submit("a", tokens(4));
    const first = d.plan();
    const full = tableOf(first, "a", 0);
    const window = tableOf(first, "a", 1);
    expect(zeroed(first, 0)).toEqual(full);
    expect(zeroed(first, 1)).toEqual(window);
    expect(full[0]).not.toBe(full[1]);
    d.results(first);
    expect(d.prefilling).toBe(1);
    let plan = first;
    for (let i = 0; i < 4; i++) plan = d.step();
    expect(d.decoding).toBe(1);
    expect(shape(tableOf(plan, "a", 0))).toBe("xxxx");
    expect(shape(tableOf(plan, "a", 1))).toContain(".");
    d.finish("a");
    d.plan();
    expect(d.free).toBe(31);
  });

  scenario(263)("shows in the count of available blocks", () => {
    const d = fixture();
    expect(d.free).toBe(31);
    d.submit("a", tokens(4));
    d.step();
    expect(d.free).toBeLessThan(31);
    d.finish("a");
    d.plan();
    expect(d.free).toBe(31);
  });

  scenario(264)("shares a batch with another request and no block", () => {
    const d = fixture();
    d.submit("a", tokens(4));
    d.submit("b", tokens(6, 50));
    const plan = d.plan();
    expect(idsOf(plan)).toEqual(["a", "b"]);
    for (const group of [0, 1]) {
      const [a, b] = [plan.blockTableRow(group, 0), plan.blockTableRow(group, 1)];
      expect(a.length).toBe(b.length);
      expect(a.at(-1)).toBe(-1);
      expect(b).not.toContain(-1);
      expect(a.filter((block) => block > 0 && b.includes(block))).toEqual([]);
    }
    d.results(plan);
    d.finish("a");
    d.finish("b");
    d.plan();
    expect(d.free).toBe(31);
  });

  scenario(265)("ends by finish or by abort with the whole pool back", () => {
    const d = fixture();
    for (const end of ["finish", "abort"] as const) {
      d.submit(end, tokens(4));
      d.step();
      d[end](end);
      d.plan();
      expect(d.free).toBe(31);
      expect(d.scheduler.cacheGroupTotalBlocks("g1")).toBe(32);
    }
  });
});

describe("chunked prefill with a window beside full history", () => {
  const chunked = () =>
    new Driver({ P: 2, pool: 63, T: 4, disablePrefixCache: true, groups: [F(2), W(4, 2)] });

  scenario(298)("grows the full table chunk by chunk and then decodes", () => {
    const d = chunked();
    d.submit("a", tokens(8));
    const one = tableOf(d.step(), "a");
    const two = tableOf(d.step(), "a");
    expect(two.length).toBeGreaterThan(one.length);
    expect(two).not.toContain(0);
    expect(rowOf(d.step(), "a").isPrefill).toBe(false);
    d.finish("a");
    d.plan();
    expect(d.free).toBe(63);
  });

  scenario(299)("slides the window's blocks out into holes", () => {
    const d = chunked();
    d.submit("a", tokens(12));
    d.step();
    const two = d.step();
    expect(shape(tableOf(two, "a", 1))).toBe("xxxx");
    const afterTwo = d.free;
    const three = d.step();
    expect(shape(tableOf(three, "a", 1))).toBe("..xxxxx");
    expect(d.free).toBe(afterTwo + 2 - 4 - 2);
    const shapes = [0, 1, 2, 3].map(() => shape(tableOf(d.step(), "a", 1)));
    expect(shapes.map((row) => [row.length, row.split(".").length - 1])).toEqual([
      [7, 4],
      [7, 5],
      [8, 5],
      [8, 6],
    ]);
    expect(shapes[2][5]).toBe("x");
  });

  scenario(300)("gives everything back when aborted in prefill or in decode", () => {
    const d = chunked();
    d.submit("a", tokens(8));
    d.step();
    d.abort("a");
    d.submit("b", tokens(4));
    d.step();
    d.step();
    d.abort("b");
    d.plan();
    expect(d.free).toBe(63);
  });
});

describe("several groups", () => {
  scenario(312)("each get a row, and no block is shared between them", () => {
    const d = new Driver({
      P: 2,
      pool: 95,
      disablePrefixCache: true,
      groups: [F(2), W(4, 2), W(8, 2)],
    });
    d.submit("a", tokens(6));
    const plan = d.step();
    const parents = [0, 1, 2].flatMap((group) => tableOf(plan, "a", group).filter((block) => block !== 0));
    expect(new Set(parents).size).toBe(parents.length);
    d.finish("a");
    d.plan();
    expect(d.free).toBe(95);
  });

  scenario(313)("with windows shorter than a block keep one or two blocks each", () => {
    const d = new Driver({ P: 4, pool: 95, disablePrefixCache: true, groups: [F(4), W(3, 4), W(5, 4)] });
    d.submit("a", tokens(12));
    d.step();
    const counts = Array.from({ length: 24 }, () => {
      const plan = d.step();
      return [1, 2].map((group) => tableOf(plan, "a", group).filter((block) => block !== 0).length);
    });
    for (const [narrow, wide] of counts) {
      expect(narrow).toBeGreaterThanOrEqual(1);
      expect(wide).toBeGreaterThanOrEqual(narrow);
      expect(wide).toBeLessThanOrEqual(2);
    }
    expect(counts.slice(0, 8).some(([narrow, wide]) => narrow !== wide)).toBe(true);
    d.finish("a");
    d.plan();
    expect(d.free).toBe(95);
  });

  scenario(314)("of full history never have holes", () => {
    const d = new Driver({ P: 2, pool: 31, disablePrefixCache: true, groups: [F(2), F(2)] });
    d.submit("a", tokens(4));
    for (let i = 0; i < 5; i++) {
      const plan = d.step();
      expect([...tableOf(plan, "a", 0), ...tableOf(plan, "a", 1)]).not.toContain(0);
    }
  });

  scenario(315)("return the pool only when the last request has ended", () => {
    const d = new Driver({ P: 2, pool: 63, disablePrefixCache: true, groups: [F(2), W(4, 2)] });
    for (const [id, pages] of [
      ["a", 2],
      ["b", 4],
      ["c", 3],
    ] as const)
      d.submit(id, tokens(pages * 2));
    d.step();
    for (const id of ["b", "a"]) {
      d.finish(id);
      d.plan();
      expect(d.free).toBeLessThan(63);
    }
    d.finish("c");
    d.plan();
    expect(d.free).toBe(63);
  });

  scenario(316)("put prefill rows before decode rows in a mixed batch", () => {
    const d = new Driver({
      P: 2,
      pool: 63,
      enableMixedPrefillDecode: true,
      disablePrefixCache: true,
      groups: [F(2), W(4, 2)],
    });
    d.submit("a", tokens(4));
    d.step();
    d.submit("b", tokens(4, 40));
    const plan = d.step();
    expect(idsOf(plan)).toEqual(["b", "a"]);
    expect(plan.forward.numPrefills).toBe(1);
    expect(plan.forward.rows.filter((row) => !row.isPrefill).map((row) => row.decodeInputId)).toEqual([-1]);
    for (const group of [0, 1]) {
      const [a, b] = [tableOf(plan, "a", group), tableOf(plan, "b", group)];
      expect(a.filter((block) => block !== 0 && b.includes(block))).toEqual([]);
    }
  });

  scenario(317)("slide each request's window on its own", () => {
    const d = new Driver({ P: 2, pool: 63, enableMixedPrefillDecode: true, groups: [F(2), W(4, 2)] });
    d.submit("a", tokens(4));
    for (let i = 0; i < 5; i++) d.step();
    d.submit("b", tokens(4, 40));
    const plan = d.step();
    expect(tableOf(plan, "a", 1)).toContain(0);
    expect(tableOf(plan, "b", 1)).not.toContain(0);
    expect(tableOf(plan, "a", 0)).not.toContain(0);
  });

  scenario(318)("work with a prefix granularity of one token", () => {
    const d = new Driver({ P: 1, pool: 31, disablePrefixCache: true, groups: [F(1), W(2, 1)] });
    d.submit("a", tokens(3));
    expect(tableOf(d.step(), "a")).toHaveLength(4);
    let plan: ExecutionPlan | undefined;
    for (let i = 0; i < 4; i++) plan = d.step();
    expect(tableOf(plan as ExecutionPlan, "a", 1)).toContain(0);
  });

  scenario(319)("let a second request in once the first has slid or ended", () => {
    const d = new Driver({ P: 2, pool: 10, disablePrefixCache: true, groups: [F(2), W(4, 2)] });
    d.submit("a", tokens(8));
    d.step();
    d.submit("b", tokens(2, 40));
    expect(d.free).toBe(0);
    expect(idsOf(d.step())).toEqual(["a"]);
    expect([d.waiting, d.free]).toEqual([1, 2]);
    d.finish("a");
    expect(idsOf(d.step())).toEqual(["b"]);
    d.finish("b");
    d.plan();
    expect(d.free).toBe(10);
  });

  scenario(320)("admit a chunk with the blocks that slid out of its own window", () => {
    const d = new Driver({ P: 2, pool: 12, T: 4, disablePrefixCache: true, groups: [F(2), W(4, 2)] });
    d.submit("a", tokens(12));
    d.step();
    d.step();
    expect(d.free).toBe(4);
    expect(rowOf(d.step(), "a").begin).toBe(8);
    expect(d.free).toBe(0);
    d.step();
    expect(d.free).toBe(2);
    d.finish("a");
    d.plan();
    expect(d.free).toBe(12);
  });

  scenario(321)("hold a window's blocks at a plateau over many chunks", () => {
    const d = new Driver({ P: 2, pool: 16, T: 4, disablePrefixCache: true, groups: [F(2), W(4, 2)] });
    d.submit("a", tokens(20));
    const plans = Array.from({ length: 5 }, () => {
      const plan = d.step();
      return { full: tableOf(plan, "a", 0), window: tableOf(plan, "a", 1) };
    });
    expect(Math.max(...plans.map(({ window }) => window.filter((block) => block !== 0).length))).toBe(5);
    expect(plans[4].full).toHaveLength(11);
  });
});

describe("choosing what runs", () => {
  const base = (more: object = {}) =>
    new Driver({ P: 2, pool: 31, host: 31, T: 64, B: 8, groups: [F(2)], ...more });

  scenario(
    269,
    270,
    429,
  )("serves requests in the order in which they were submitted", () => {
    for (const order of [
      ["r_ccc", "r_aaa", "r_bbb"],
      ["r_aaa", "r_ccc", "r_bbb"],
    ]) {
      const plans = [base({ B: 1 }), base({ B: 1 })].map((d) => {
        for (const id of order) d.submit(id, tokens(4));
        return idsOf(d.plan());
      });
      expect(plans).toEqual([[order[0]], [order[0]]]);
    }
  });

  scenario(268)("computes the same prompt again when the prefix cache is off", () => {
    const d = base({ disablePrefixCache: true });
    for (const id of ["a", "b"]) {
      d.submit(id, tokens(4));
      const plan = d.plan();
      expect(extent(plan, id)).toEqual({ prefix: 0, input: 4, replay: 0 });
      expect(plan.loadBacks).toEqual([]);
      d.results(plan);
      d.finish(id);
      d.plan();
    }
  });

  scenario(267)("asks for no transfer without work or without a hit on Host", () => {
    const d = base();
    const empty = d.plan();
    expect([empty.isEmpty, empty.writeBacks.length, empty.loadBacks.length]).toEqual([true, 0, 0]);
    d.submit("a", tokens(4));
    expect(d.plan().loadBacks).toEqual([]);
  });

  scenario(266, 280)("loads a prefix back from Host when the device has lost it", () => {
    const d = base({ w: 0, pool: 4, host: 31 });
    d.submit("a", tokens(4));
    d.step();
    const decode = d.step();
    expect(decode.writeBacks).toHaveLength(1);
    d.ackWrites(decode);
    d.finish("a");
    d.submit("filler", tokens(6, 50));
    for (let i = 0; i < 2; i++) d.ackWrites(d.step());
    d.finish("filler");
    d.ackWrites(d.plan());
    d.submit("b", tokens(4));
    const plan = d.plan();
    expect(extent(plan, "b")).toEqual({ prefix: 2, input: 2, replay: 0 });
    d.ackLoads(plan);
    d.results(plan);
    d.expectSound();
  });

  scenario(275)("refuses a prompt without tokens", () => {
    expect(() => base().submit("a", [])).toThrow("has no tokens");
  });

  scenario(276)("takes all requests of a call or none", () => {
    const d = base();
    const good = { requestId: "good", tokens: Int32Array.from(tokens(4)) };
    const bad = { requestId: "bad", tokens: Int32Array.from(tokens(4)), maxNewTokens: -1 };
    expect(() => d.scheduler.submit([good, bad])).toThrow("maxNewTokens");
    expect(d.waiting).toBe(0);
    expect(d.scheduler.submit([good])).toHaveLength(1);
    expect(() => d.scheduler.submit([good])).toThrow("is in use");
  });

  scenario(278)("names the field of a configuration that breaks a rule before it builds anything", () => {
    expect(() => base({ pool: 0 })).toThrow("device cache");
  });
});
