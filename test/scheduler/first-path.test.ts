/** The shortest way through the scheduler: admit, compute, decode, finish, hit. */
import { describe, expect, test } from "bun:test";
import { Driver, extent, F, idsOf, M, rowOf, shape, tableOf, tokens, W, zeroed } from "./driver";

describe("one full-history group", () => {
  test("carries a prompt through chunks, decodes and finish, and gets every block back", () => {
    const d = new Driver({ P: 4, pool: 16, T: 8, groups: [F(4)] });
    d.submit("a", tokens(18));
    expect(extent(d.step(), "a")).toEqual({ prefix: 0, input: 8, replay: 0 });
    expect(extent(d.step(), "a")).toEqual({ prefix: 8, input: 8, replay: 0 });
    const last = d.step();
    expect(rowOf(last, "a")).toMatchObject({ begin: 16, size: 2, completesPrompt: true });
    expect(tableOf(last, "a")).toHaveLength(5);
    for (let i = 0; i < 6; i++)
      expect(rowOf(d.step(), "a")).toMatchObject({ isPrefill: false, begin: 18 + i });
    d.finish("a");
    expect(d.plan().isEmpty).toBe(true);
    d.expectAllFree();
  });

  test("reuses the pages of an earlier prompt and of what it generated", () => {
    const d = new Driver({ P: 4, pool: 16, groups: [F(4)] });
    d.submit("a", tokens(10));
    d.runToEnd("a", 4);
    d.submit("b", [...tokens(10), 7, 7, 7, 99]);
    const plan = d.plan();
    expect(extent(plan, "b")).toEqual({ prefix: 12, input: 2, replay: 0 });
    expect(rowOf(plan, "b")).toMatchObject({ deviceHitTokens: 12, isFirstChunk: true });
    expect(zeroed(plan)).toEqual([tableOf(plan, "b")[3]]);
  });

  test("evicts the oldest pages when a prompt needs the room", () => {
    const d = new Driver({ P: 4, pool: 4, groups: [F(4)] });
    d.submit("a", tokens(9));
    d.runToEnd("a");
    d.submit("b", tokens(9, 100));
    d.runToEnd("b");
    expect(d.scheduler.gauges()).toMatchObject({ evictions: 1, cachedBlocks: 3 });
    d.expectAllFree();
  });

  test("refuses a request that the pool can never carry", () => {
    const d = new Driver({ P: 4, pool: 4, groups: [F(4)] });
    expect(() => d.submit("a", tokens(16), { maxNewTokens: 1 })).toThrow("can carry 16");
    expect(d.submit("b", tokens(15), { maxNewTokens: 1 })).toBe(1);
  });

  test("decodes two requests in one batch while a third waits for room", () => {
    const d = new Driver({ P: 4, pool: 6, groups: [F(4)] });
    for (const id of ["a", "b", "c"]) d.submit(id, tokens(8, id.charCodeAt(0) * 100), { maxNewTokens: 4 });
    expect(idsOf(d.step())).toEqual(["a", "b"]);
    expect(idsOf(d.step())).toEqual(["a", "b"]);
    expect(d.waiting).toBe(1);
    d.abort("a");
    expect(idsOf(d.step())).toEqual(["c"]);
  });
});

describe("three kinds of groups over one pool", () => {
  test("keep what each kind reads and hit together", () => {
    const d = new Driver({ P: 4, pool: 40, T: 8, groups: [F(4), W(6, 2), M(4)] });
    d.submit("a", tokens(17));
    d.step();
    d.step();
    const plan = d.step();
    expect(shape(tableOf(plan, "a", 0))).toBe("xxxxx");
    expect(shape(tableOf(plan, "a", 1))).toBe(".....xxxx");
    expect(shape(tableOf(plan, "a", 2))).toBe("...xxx");
    d.finish("a");
    d.submit("b", [...tokens(16), 50, 51]);
    expect(extent(d.plan(), "b")).toEqual({ prefix: 16, input: 2, replay: 0 });
    d.expectSound();
  });
});
