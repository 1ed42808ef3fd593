/** What a round costs that finds nothing to do: the same whatever waits, and whatever once waited. */
import { describe, expect, spyOn, test } from "bun:test";
import type { SchedulerRole } from "../../src/scheduler/config";
import { RequestBook } from "../../src/scheduler/request-book";
import { Driver, F, tokens } from "./driver";

const stalledRounds = (d: Driver) => d.scheduler.gauges().stalledRounds;

function driver(role: SchedulerRole, depth = 0): Driver {
  return new Driver({ P: 2, pool: 4, T: 64, B: 2, depth, role, groups: [F(2)] });
}

describe("a round that finds nothing to do", () => {
  test("asks what is out without walking the requests", () => {
    const walks = spyOn(RequestBook.prototype, "all");
    for (const role of ["fused", "prefill", "decode"] as const) {
      const d = driver(role, 1);
      for (let i = 0; i < 20; i++) d.submit(`request ${i}`, tokens(4, i));
      for (let i = 0; i < 8; i++) d.scheduler.nextExecutionPlan();
    }
    expect(walks).not.toHaveBeenCalled();
    walks.mockRestore();
  });
});

describe("a round is not counted as stalled", () => {
  test("while a request waits for its peer", () => {
    for (const role of ["prefill", "decode"] as const) {
      const d = driver(role);
      d.submit("a", tokens(4));
      expect([d.plan().isEmpty, stalledRounds(d)]).toEqual([true, 0]);
    }
  });

  test("while a peer computes a prompt or fetches one", () => {
    const atDecode = driver("decode");
    atDecode.submit("a", tokens(4));
    atDecode.send({ kind: "bootstrapped", request: 1 });
    expect(atDecode.plan().remotePrefill.rows.length).toBe(1);
    expect([atDecode.plan().isEmpty, stalledRounds(atDecode)]).toEqual([true, 0]);
    const atPrefill = driver("prefill");
    atPrefill.submit("a", tokens(4));
    atPrefill.send({ kind: "bootstrapped", request: 1 });
    const chunk = atPrefill.plan();
    expect([atPrefill.plan().isEmpty, stalledRounds(atPrefill)]).toEqual([true, 0]);
    atPrefill.results(chunk);
    expect(atPrefill.plan().remoteDecode.rows.length).toBe(1);
    expect([atPrefill.plan().isEmpty, stalledRounds(atPrefill)]).toEqual([true, 0]);
  });
});
