/** Sliding groups that are rebuilt by feeding a bounded window again. */
import { describe, expect } from "bun:test";
import {
  Driver,
  extent,
  F,
  idsOf,
  R,
  rowOf,
  type Setup,
  shape,
  tableOf,
  tokens,
  W,
} from "../scheduler/driver";
import { scenario } from "./scenario";

const fixture = (more: Partial<Setup> = {}) =>
  new Driver({ P: 8, pool: 255, T: 64, B: 8, groups: [F(8), R(16, 4), R(2, 2)], ...more });

function seed(d: Driver, count: number): number[] {
  d.submit("seed", tokens(count));
  const table = tableOf(d.step(), "seed");
  d.finish("seed");
  d.plan();
  return table;
}

describe("bounded replay", () => {
  scenario(492, 561)("starts its tables where the window begins", () => {
    const d = fixture();
    const cached = seed(d, 32);
    d.submit("b", tokens(40));
    const plan = d.plan();
    expect(extent(plan, "b")).toEqual({ prefix: 16, input: 24, replay: 16 });
    expect(tableOf(plan, "b", 0).slice(0, 4)).toEqual(cached.slice(0, 4));
    expect(rowOf(plan, "b").prefillLength).toBe(40);
    expect(shape(tableOf(plan, "b", 1))).toBe("....xxxxxxx");
    expect(shape(tableOf(plan, "b", 2))).toBe(`${".".repeat(8)}${"x".repeat(13)}`);
    d.results(plan);
    expect(rowOf(d.step(), "b").begin).toBe(40);
    d.finish("b");
    d.plan();
    d.expectAllFree();
  });

  scenario(493)("re-feeds a hit that is shorter than the window whole", () => {
    const d = fixture();
    seed(d, 9);
    d.submit("b", tokens(16));
    const plan = d.plan();
    expect(extent(plan, "b")).toEqual({ prefix: 0, input: 16, replay: 8 });
    expect(tableOf(plan, "b", 1)[0]).toBeGreaterThan(0);
  });

  scenario(494)("re-feeds nothing without a hit", () => {
    const d = fixture();
    d.submit("a", tokens(12));
    expect(extent(d.plan(), "a")).toEqual({ prefix: 0, input: 12, replay: 0 });
  });

  scenario(495, 496)("keeps the last chunk at least as long as the window", () => {
    for (const [prompt, chunks] of [
      [70, [54, 16]],
      [84, [64, 20]],
    ] as const) {
      const d = fixture();
      d.submit("a", tokens(prompt));
      expect([0, 1].map(() => extent(d.step(), "a"))).toEqual([
        { prefix: 0, input: chunks[0], replay: 0 },
        { prefix: chunks[0], input: chunks[1], replay: 0 },
      ]);
    }
  });

  scenario(497)("starts from the hit that the recomputed end leaves", () => {
    const d = fixture({ prefixReplayTokens: 8 });
    seed(d, 33);
    d.submit("b", tokens(36));
    expect(extent(d.plan(), "b")).toEqual({ prefix: 8, input: 28, replay: 16 });
  });

  scenario(498)("is paid for before decodes share the step", () => {
    const d = fixture({ enableMixedPrefillDecode: true, T: 38, B: 16 });
    seed(d, 25);
    for (let i = 0; i < 8; i++) d.submit(`d${i}`, tokens(3, 1000 + 10 * i));
    d.step();
    d.step();
    d.submit("r2", tokens(39));
    const plan = d.plan();
    expect(idsOf(plan)[0]).toBe("r2");
    expect(extent(plan, "r2")).toEqual({ prefix: 8, input: 31, replay: 16 });
    expect(plan.forward.rows.length - plan.forward.numPrefills).toBe(6);
  });

  scenario(499)("leaves exactly the tail that a prefill worker sends on", () => {
    const d = fixture({ role: "prefill" });
    const prefill = (id: string, count: number) => {
      d.submit(id, tokens(count));
      d.send({ kind: "bootstrapped", request: d.handle(id) });
      return d.plan();
    };
    expect(extent(prefill("r1", 33), "r1").replay).toBe(0);
    d.result("r1", 9);
    d.plan();
    d.send({ kind: "transferSucceeded", request: d.handle("r1") });
    const plan = prefill("r2", 40);
    expect(extent(plan, "r2")).toEqual({ prefix: 16, input: 24, replay: 16 });
    expect(shape(tableOf(plan, "r2", 1)).slice(0, 10)).toBe("....xxxxxx");
    expect(shape(tableOf(plan, "r2", 2)).slice(0, 20)).toBe(`${".".repeat(8)}${"x".repeat(12)}`);
  });

  scenario(500)("re-feeds nothing for a prompt that a peer computes", () => {
    const d = fixture({ role: "decode" });
    d.submit("a", tokens(40));
    d.send({ kind: "bootstrapped", request: d.handle("a") });
    const plan = d.plan();
    const [row] = plan.remotePrefill.rows;
    expect([row.begin, row.replay, row.inputLength, idsOf(plan)]).toEqual([0, 0, 40, []]);
    const tables = [0, 1, 2].map((group) => shape(d.mirror.tableOf(group, row.slot)));
    expect(tables[0].slice(0, 5)).toBe("xxxxx");
    expect(tables[1].slice(0, 10)).toBe("......xxxx");
    expect(tables[2].slice(0, 20)).toBe(`${".".repeat(19)}x`);
  });

  scenario(514)("is for sliding history only", () => {
    const broken = (group: object) => () =>
      fixture({ groups: [F(8), { ...group, replayable: true } as never] });
    expect(broken(F(8))).toThrow("sliding History group");
    expect(broken({ ...F(8), family: "state" })).toThrow("sliding History group");
    expect(broken(W(16, 4))).not.toThrow();
  });

  scenario(566)("shows in a row what was re-fed and what is new", () => {
    const d = fixture({ enableMixedPrefillDecode: true });
    seed(d, 25);
    d.submit("d0", tokens(3, 1000));
    d.step();
    d.step();
    d.submit("r0", tokens(30));
    d.submit("r1", tokens(5, 2000));
    const plan = d.plan();
    expect(idsOf(plan)).toEqual(["r0", "r1", "d0"]);
    expect(plan.forward.rows.slice(0, 2).map((row) => [row.begin - row.replay, row.replay])).toEqual([
      [8, 16],
      [0, 0],
    ]);
    expect(plan.forward.numPrefills).toBe(2);
  });
});
