/** Who gives way when the pool is full, and how it comes back. */
import { describe, expect } from "bun:test";
import { Driver, extent, F, idsOf, M, rowOf, shape, tableOf, tokens } from "../scheduler/driver";
import { scenario } from "./scenario";

const twoFull = (pool: number, more: object = {}) =>
  new Driver({ P: 2, pool, disablePrefixCache: true, groups: [F(2), F(2)], ...more });

/** Tokens of a retracted request that its readmission covers, hit and input together. */
function covered(d: Driver, plan: ReturnType<Driver["plan"]>, id: string): number {
  const { prefix, input } = extent(plan, id);
  expect(d.waiting).toBe(0);
  return prefix + input;
}

describe("retraction", () => {
  scenario(322, 323)("takes the largest of two decoders at once, and lets it come back", () => {
    const d = twoFull(12);
    d.submit("r1", tokens(4));
    d.submit("r2", tokens(4, 50));
    d.plan();
    expect(d.free).toBe(0);
    for (const [one, two] of [
      [42, 142],
      [43, 143],
    ]) {
      d.result("r1", one);
      d.result("r2", two);
      expect(idsOf(d.plan())).toEqual(["r1", "r2"]);
    }
    d.result("r1", 44);
    expect(idsOf(d.plan())).toEqual([]);
    expect([d.free, d.waiting, d.decoding]).toEqual([0, 0, 2]);
    d.result("r2", 144);
    expect(idsOf(d.plan())).toEqual([]);
    expect([d.free, d.waiting, d.decoding]).toEqual([6, 1, 1]);
    expect(idsOf(d.plan())).toEqual(["r2"]);
    d.result("r2", 145);
    d.finish("r2");
    const back = d.plan();
    expect(idsOf(back)).toEqual(["r1"]);
    expect(rowOf(back, "r1").prefillLength).toBe(7);
    expect(covered(d, back, "r1")).toBe(7);
    d.result("r1", 45);
    expect(idsOf(d.plan())).toEqual(["r1"]);
    d.result("r1", 46);
    d.finish("r1");
    d.plan();
    expect(d.free).toBe(12);
  });

  scenario(324)("makes room for the rest of a crowded batch of prompts with state", () => {
    const d = new Driver({ P: 4, pool: 12, T: 64, disablePrefixCache: true, groups: [F(4), M(4)] });
    for (const [i, id] of ["a", "b", "c"].entries()) d.submit(id, tokens(8, 1 + 100 * i));
    const first = d.step();
    expect(idsOf(first)).toEqual(["a", "b"]);
    expect(shape(tableOf(first, "a", 1))).toBe("xxx");
    const plan = d.step();
    expect(plan.forward.rows.length).toBeGreaterThan(0);
    expect(d.waiting).toBe(1);
  });

  scenario(325)("stores what it takes away when there is a Host", () => {
    const d = twoFull(12, { host: 31, disablePrefixCache: false });
    d.submit("r1", tokens(4));
    d.submit("r2", tokens(4, 50));
    let plan = d.step();
    for (let i = 0; d.waiting === 0 && i < 12; i++) {
      d.ackWrites(plan);
      plan = d.step();
    }
    expect(d.waiting).toBe(1);
    expect(plan.writeBacks.map((op) => op.sourcePinned)).toContain(false);
    d.ackWrites(plan);
    d.expectSound();
  });

  scenario(326)("prefers the victim that gives back more", () => {
    const d = twoFull(14);
    d.submit("a", tokens(6));
    d.submit("b", tokens(4, 50));
    d.step();
    expect(d.free).toBe(0);
    d.step();
    expect(d.free).toBe(0);
    d.step();
    const plan = d.plan();
    expect(plan.isEmpty).toBe(true);
    expect([d.free, d.waiting, d.decoding]).toEqual([8, 1, 1]);
    expect(d.scheduler.tokenCountOf(d.handle("a"))).toBe(9);
    expect(idsOf(d.step())).toEqual(["b"]);
    d.finish("b");
    const back = d.step();
    expect(rowOf(back, "a").prefillLength).toBe(9);
    expect(covered(d, back, "a")).toBe(9);
    expect(rowOf(back, "a").inputLength).toBeGreaterThan(0);
    d.step();
    d.finish("a");
    d.plan();
    expect(d.free).toBe(14);
  });

  scenario(327)("brings a retracted request back in chunks", () => {
    const d = twoFull(14, { T: 4 });
    d.submit("a", tokens(6));
    d.submit("b", tokens(4, 50));
    expect(idsOf(d.plan())).toEqual(["a"]);
    expect(() => d.result("a", 9)).toThrow("does not complete its prompt");
    d.result("a");
    expect(idsOf(d.plan())).toEqual(["a", "b"]);
    d.result("a", 42);
    d.result("b");
    expect(idsOf(d.plan())).toEqual(["b"]);
    d.result("b", 142);
    expect(idsOf(d.step())).toEqual(["a", "b"]);
    expect(d.free).toBe(0);
    expect(idsOf(d.step())).toEqual(["a", "b"]);
    expect(d.plan().isEmpty).toBe(true);
    expect([d.free, d.waiting, d.decoding]).toEqual([8, 1, 1]);
    expect(idsOf(d.step())).toEqual(["b"]);
    d.finish("b");
    let position = -1;
    while (d.prefilling + d.waiting > 0 && position < 9) {
      const back = d.step();
      const { prefix, input } = extent(back, "a");
      expect(rowOf(back, "a").prefillLength).toBe(9);
      if (position >= 0) expect(prefix).toBe(position);
      position = prefix + input;
    }
    expect(position).toBe(9);
    d.finish("a");
    d.plan();
    expect(d.free).toBe(14);
  });

  scenario(328)("takes an incomplete prompt first, and grants nothing behind decodes that do not mix", () => {
    const d = twoFull(18, { T: 8 });
    d.submit("holder", tokens(4));
    d.step();
    d.submit("active", tokens(16, 50));
    const chunk = d.step();
    expect(extent(chunk, "active")).toMatchObject({ input: 8 });
    expect(d.free).toBe(4);
    d.submit("queued", tokens(2, 90));
    const plan = d.step();
    expect(idsOf(plan)).toEqual(["holder"]);
    expect([d.free, d.waiting, d.decoding]).toEqual([12, 2, 1]);
  });

  scenario(330)("refunds what it took, to the last block", () => {
    const d = twoFull(8);
    d.submit("a", tokens(6));
    d.step(() => 42);
    expect(d.free).toBe(0);
    d.step(() => 43);
    d.step(() => 44);
    d.plan();
    expect([d.free, d.waiting]).toEqual([8, 1]);
    d.submit("d", tokens(6, 50));
    let plan = d.plan();
    if (idsOf(plan).join() !== "d") {
      d.results(plan);
      d.abort("a");
      plan = d.plan();
    }
    expect(idsOf(plan)).toEqual(["d"]);
    d.results(plan);
    d.step();
    d.finish("d");
    if (d.scheduler.handleOf("a") !== undefined) d.abort("a");
    d.plan();
    expect([d.free, d.waiting]).toEqual([8, 0]);
  });

  scenario(331)("hands the blocks to one that waits like a new prompt within the same plan", () => {
    const d = twoFull(24);
    d.submit("r1", tokens(8));
    d.submit("r2", tokens(6, 50));
    d.submit("r3", tokens(4, 90));
    d.step();
    d.step();
    expect(d.free).toBe(0);
    d.step();
    expect(d.plan().isEmpty).toBe(true);
    expect([d.free, d.waiting]).toEqual([10, 1]);
    const seen: [string[], number][] = [];
    let plan = d.step();
    for (let i = 0; i < 12 && !idsOf(plan).includes("r1"); i++) {
      seen.push([idsOf(plan), d.free]);
      plan = d.step();
    }
    expect(seen[0]).toEqual([["r2", "r3"], 6]);
    expect(idsOf(plan)).toEqual(["r1"]);
    expect(d.waiting).toBe(1);
    d.abort("r1");
    d.abort("r2");
    expect(idsOf(d.step())).toEqual(["r3"]);
    d.finish("r3");
    d.plan();
    expect(d.free).toBe(24);
  });

  scenario(332)("lets a single grower with state retract itself", () => {
    const d = new Driver({ P: 2, pool: 8, disablePrefixCache: true, groups: [F(2), M(2)] });
    d.submit("a", tokens(4));
    for (let i = 0; i < 16 && d.waiting === 0; i++) d.step();
    expect([d.free, d.decoding, d.waiting]).toEqual([8, 0, 1]);
  });

  scenario(339)("counts the reserve of a decode as room that is taken", () => {
    const d = twoFull(10);
    d.submit("a", tokens(6));
    d.submit("b", tokens(2, 50));
    expect(idsOf(d.step())).toEqual(["a"]);
    expect([d.waiting, d.free]).toEqual([1, 2]);
    d.abort("b");
    d.step();
    expect(d.free).toBe(2);
    d.finish("a");
    d.submit("c", tokens(8, 70));
    d.step();
    expect(d.free).toBe(0);
  });
});
