/** Prefixes found on the device: who hits what, and when it may be taken. */
import { describe, expect } from "bun:test";
import { Driver, extent, F, rowOf, type Setup, shape, tableOf, tokens, W } from "../scheduler/driver";
import { scenario } from "./scenario";

const fixture = (more: Partial<Setup> = {}) =>
  new Driver({ P: 2, pool: 63, T: 64, groups: [F(2), W(32, 2)], ...more });

/** Runs one request to its first token and finishes it. */
function seed(d: Driver, prompt: readonly number[]): void {
  d.submit("seed", prompt);
  d.runToEnd("seed");
}

const shared = (common: number, own: number) => [...tokens(common), ...tokens(own, 900)];

describe("reuse on the device", () => {
  scenario(340)("shares the common pages and computes the rest", () => {
    const d = fixture();
    d.submit("r1", tokens(12));
    const first = tableOf(d.step(), "r1");
    d.finish("r1");
    d.plan();
    const before = d.free;
    d.submit("r2", shared(8, 4));
    const plan = d.plan();
    expect(extent(plan, "r2")).toEqual({ prefix: 8, input: 4, replay: 0 });
    expect(rowOf(plan, "r2").prefillLength).toBe(12);
    expect(tableOf(plan, "r2")).toHaveLength(7);
    expect(tableOf(plan, "r2").slice(0, 4)).toEqual(first.slice(0, 4));
    expect(before - d.free).toBe(14);
  });

  scenario(341)("publishes the pages of a request's last forward when it finishes", () => {
    const d = fixture();
    seed(d, tokens(8));
    d.submit("b", tokens(8));
    expect(extent(d.plan(), "b")).toMatchObject({ prefix: 6, input: 2 });
  });

  scenario(342)("forgets everything when it is cleared while idle", () => {
    const d = fixture();
    seed(d, tokens(8));
    expect(d.scheduler.clearL1Cache()).toBe(true);
    d.submit("b", tokens(8));
    expect(extent(d.plan(), "b")).toMatchObject({ prefix: 0, input: 8 });
  });

  scenario(343)("is kept when clearing is refused because a request uses it", () => {
    const d = fixture();
    seed(d, tokens(8));
    d.submit("live", tokens(8));
    d.step();
    expect(d.scheduler.clearL1Cache()).toBe(false);
    d.finish("live");
    d.plan();
    d.submit("c", tokens(8));
    expect(extent(d.plan(), "c")).toMatchObject({ prefix: 6, input: 2 });
  });

  scenario(344)("always leaves a token to compute", () => {
    const d = fixture();
    seed(d, tokens(8));
    const before = d.free;
    d.submit("b", tokens(8));
    const plan = d.plan();
    const row = rowOf(plan, "b");
    expect(extent(plan, "b")).toMatchObject({ prefix: 6, input: 2 });
    expect(Array.from(row.tokens.subarray(row.begin, row.begin + row.size))).toEqual([7, 8]);
    expect(tableOf(plan, "b")).toHaveLength(5);
    expect(before - d.free).toBe(10);
  });

  scenario(345, 346)("recomputes at least the configured end of a prompt and publishes it again", () => {
    const eight = fixture({ prefixReplayTokens: 8 });
    seed(eight, tokens(8));
    eight.submit("b", shared(8, 4));
    expect(extent(eight.plan(), "b")).toMatchObject({ prefix: 4, input: 8 });
    const four = fixture({ prefixReplayTokens: 4 });
    seed(four, tokens(4));
    four.submit("b", shared(8, 4));
    expect(extent(four.step(), "b")).toMatchObject({ prefix: 4, input: 8 });
    four.finish("b");
    four.submit("c", shared(8, 4));
    expect(extent(four.plan(), "c")).toMatchObject({ prefix: 8, input: 4 });
  });

  scenario(347, 348)("has no hit where all of it must be recomputed or the cache is off", () => {
    for (const more of [{ prefixReplayTokens: 32 }, { prefixReplayTokens: 8, disablePrefixCache: true }]) {
      const d = fixture(more);
      seed(d, tokens(8));
      d.submit("b", tokens(8));
      expect(extent(d.plan(), "b")).toMatchObject({ prefix: 0, input: 8 });
    }
  });

  scenario(349)("recomputes across groups of different spans from one boundary", () => {
    const d = new Driver({ P: 8, pool: 63, prefixReplayTokens: 8, groups: [F(8), W(32, 4, 2)] });
    d.submit("a", tokens(32));
    const first = d.step();
    const [full, window] = [tableOf(first, "a", 0), tableOf(first, "a", 1)];
    d.finish("a");
    d.submit("b", tokens(32));
    const plan = d.plan();
    expect(extent(plan, "b")).toMatchObject({ prefix: 24, input: 8 });
    expect(tableOf(plan, "b", 0)).toHaveLength(5);
    expect(tableOf(plan, "b", 0).slice(0, 3)).toEqual(full.slice(0, 3));
    const table = tableOf(plan, "b", 1);
    expect(table.length).toBe(Math.ceil((32 + 1) / 4));
    expect(table.slice(0, 6)).toEqual(window.slice(0, 6));
    for (const block of table.slice(6)) expect(window).not.toContain(block);
  });

  scenario(350)("refuses a negative end to recompute", () => {
    expect(() => fixture({ prefixReplayTokens: -1 })).toThrow("prefixReplayTokens");
  });

  scenario(351, 352)("computes everything when off, and what is not shared when on", () => {
    const off = fixture({ disablePrefixCache: true });
    seed(off, tokens(12));
    const before = off.free;
    off.submit("b", tokens(12));
    const plan = off.plan();
    expect(rowOf(plan, "b").inputLength).toBe(12);
    expect(tableOf(plan, "b")).toHaveLength(7);
    expect(before - off.free).toBe(14);
    const on = fixture();
    seed(on, tokens(4));
    on.submit("b", shared(4, 8));
    const partial = on.plan();
    expect(extent(partial, "b")).toMatchObject({ prefix: 4, input: 8 });
    expect(tableOf(partial, "b")).toHaveLength(7);
  });

  scenario(353)("waits in a tight pool and hits when it gets in", () => {
    const d = fixture({ pool: 10 });
    seed(d, tokens(4));
    d.submit("r3", tokens(2, 700));
    d.step();
    d.submit("r2", shared(4, 4));
    const waits = d.step();
    expect(waits.forward.rows.map((row) => row.requestId)).toEqual(["r3"]);
    expect(d.free).toBe(6);
    d.finish("r3");
    const plan = d.plan();
    expect(extent(plan, "r2")).toMatchObject({ prefix: 4, input: 4 });
    expect(d.free).toBe(0);
  });

  scenario(354)("reaches into what earlier turns generated", () => {
    const d = fixture();
    const turn = (id: string, prompt: number[], produced: number[]) => {
      d.submit(id, prompt);
      const before = d.free;
      const plan = d.plan();
      const seen = { ...extent(plan, id), rows: tableOf(plan, id).length, taken: before - d.free };
      d.result(id, produced[0]);
      for (const token of produced.slice(1)) {
        d.plan();
        d.result(id, token);
      }
      d.finish(id);
      d.plan();
      return seen;
    };
    turn("r1", tokens(4), [101, 102, 103, 104, 105]);
    const second = [...tokens(4), 101, 102, 103, 104, 201, 202];
    expect(turn("r2", second, [203, 204, 205])).toMatchObject({ prefix: 8, input: 2, rows: 6, taken: 12 });
    const third = [...second, 203, 204, 203, 951, 952, 953];
    expect(turn("r3", third, [1])).toMatchObject({ prefix: 12, input: 4, rows: 9, taken: 18 });
  });

  scenario(355)("resumes a short window from the blocks in front of the boundary", () => {
    const d = fixture({ groups: [F(2), W(4, 2)] });
    d.submit("r1", tokens(4));
    d.plan();
    for (const token of [101, 102, 103, 104]) {
      d.result("r1", token);
      d.plan();
    }
    d.result("r1", 105);
    const decode = d.plan();
    expect(shape(tableOf(decode, "r1", 1)).slice(0, 4)).toBe("..xx");
    const window = tableOf(decode, "r1", 1);
    d.result("r1", 106);
    expect(shape(tableOf(d.plan(), "r1", 1)).slice(0, 4)).toBe("...x");
    d.finish("r1");
    d.plan();
    d.submit("r2", [...tokens(4), 101, 102, 103, 104, 201, 202]);
    const plan = d.plan();
    expect(shape(tableOf(plan, "r2", 1))).toBe("..xxxx");
    expect(tableOf(plan, "r2", 1).slice(2, 4)).toEqual([window[2], window[3]]);
    d.abort("r2");
    d.plan();
    d.expectAllFree();
  });
});
