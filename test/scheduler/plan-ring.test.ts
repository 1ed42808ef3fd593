/** How long a plan stays as it was built, whatever becomes of its requests meanwhile. */
import { describe, expect, test } from "bun:test";
import type { SchedulerEvent } from "../../src/scheduler/events";
import type { ExecutionPlan } from "../../src/scheduler/plan";
import { PlanGuard } from "../sim/plan-guard";
import { Driver, F, idsOf, tokens } from "./driver";

const driver = (depth: number, B = 4) => new Driver({ P: 2, pool: 31, T: 8, B, depth, groups: [F(2)] });

/** A decode step of request "a" whose result is out. */
function stepOut(d: Driver): { plan: ExecutionPlan; guard: PlanGuard } {
  d.submit("a", tokens(4));
  d.step();
  const plan = d.plan();
  expect(idsOf(plan)).toEqual(["a"]);
  return { plan, guard: new PlanGuard(plan) };
}

describe("a plan whose result is out", () => {
  for (const depth of [0, 1]) {
    for (const kind of ["abort", "finish", "retract", "transferFailed"] as const) {
      test(`stays when its only request gets ${kind}, overlap ${depth}`, () => {
        const d = driver(depth);
        const { plan, guard } = stepOut(d);
        d.send({ kind, request: d.handle("a") } as SchedulerEvent);
        if (kind === "retract") d.abort("a");
        for (let i = 0; i < 5; i++) expect(d.plan().isEmpty).toBe(true);
        guard.check();
        d.results(plan);
      });
    }
  }

  test("stays while another request is planned beside it and empty plans follow", () => {
    const d = driver(1);
    const { plan, guard } = stepOut(d);
    d.abort("a");
    d.submit("b", tokens(4, 50));
    const second = d.plan();
    const secondGuard = new PlanGuard(second);
    expect(idsOf(second)).toEqual(["b"]);
    d.abort("b");
    for (let i = 0; i < 5; i++) d.plan();
    guard.check();
    secondGuard.check();
    d.results(plan);
    d.results(second);
  });

  test("outlives plans that the driver sent back uncomputed, however many", () => {
    const d = driver(1, 1);
    const { guard } = stepOut(d);
    d.abort("a");
    d.submit("b", tokens(4, 50));
    for (let i = 0; i < 6; i++) {
      expect(idsOf(d.plan())).toEqual(["b"]);
      d.send({ kind: "retract", request: d.handle("b") });
    }
    guard.check();
  });

  test("keeps the tokens that it shows though the request let go of them", () => {
    const d = driver(1);
    d.submit("a", tokens(6, 70));
    const { rows } = d.plan().forward;
    d.abort("a");
    for (let i = 0; i < 3; i++) d.plan();
    expect(Array.from(rows[0].tokens)).toEqual(tokens(6, 70));
  });
});

describe("plans", () => {
  for (const depth of [0, 1]) {
    test(`are ${depth + 2} and no more for a driver that never answers, overlap ${depth}`, () => {
      const d = driver(depth);
      const seen = new Set<ExecutionPlan>();
      for (let i = 0; i < 40; i++) {
        if (i % 2 === 0) d.submit(`request ${i}`, tokens(4, i));
        seen.add(d.plan());
        if (i % 4 === 0) d.abort(`request ${i}`);
      }
      expect(seen.size).toBe(depth + 2);
    });
  }

  test("refer to no prompt that only an earlier, larger plan in their place showed", () => {
    const d = new Driver({ P: 2, pool: 99, T: 64, B: 32, groups: [F(2)] });
    const prompts = Array.from({ length: 32 }, (_, i) => {
      const prompt = Int32Array.of(i, i);
      d.scheduler.submit([{ requestId: `request ${i}`, tokens: prompt, maxNewTokens: 1 }]);
      return new WeakRef(prompt);
    });
    const large = d.scheduler.nextExecutionPlan();
    expect(large.forward.rows.length).toBe(prompts.length);
    d.results(large);
    for (let i = 0; i < 32; i++) d.finish(`request ${i}`);
    // The objects of ended requests serve others, so they are no reason to be kept.
    for (let i = 0; i < 4; i++) {
      d.submit(`later ${i}`, tokens(3));
      d.results(d.scheduler.nextExecutionPlan());
      d.abort(`later ${i}`);
    }
    Bun.gc(true);
    expect(prompts.filter((prompt) => prompt.deref() !== undefined).length).toBeLessThan(4);
  });
});
