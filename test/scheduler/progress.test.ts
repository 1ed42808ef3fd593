/** Rounds that must not stand still, and what siblings of a prompt hit. */
import { describe, expect, test } from "bun:test";
import { Driver, F, idsOf, M, tokens, W } from "./driver";

describe("no stall", () => {
  test("stops two long generations in a pool that holds one and a half of them", () => {
    const d = new Driver({ P: 4, pool: 30, groups: [F(4), W(64, 4)] });
    for (const [i, id] of ["a", "b"].entries()) d.submit(id, tokens(8, 1 + 100 * i), { maxNewTokens: 40 });
    const done = new Set<string>();
    let empty = 0;
    for (let round = 0; done.size < 2; round++) {
      expect(round).toBeLessThan(400);
      const plan = d.step();
      empty = plan.isEmpty ? empty + 1 : 0;
      expect(empty).toBeLessThan(2);
      for (const id of ["a", "b"]) {
        const handle = d.scheduler.handleOf(id);
        if (handle === undefined || d.scheduler.tokenCountOf(handle) < 48 || !d.scheduler.canFinish(handle))
          continue;
        d.finish(id);
        done.add(id);
      }
    }
    d.plan();
    d.expectAllFree();
  });

  test("leaves a decoder waiting behind a prompt that a mixed step keeps its budget for", () => {
    const d = new Driver({
      P: 4,
      pool: 40,
      T: 4,
      B: 1,
      enableMixedPrefillDecode: true,
      groups: [F(4), M(4)],
    });
    d.submit("decoder", tokens(4));
    d.step();
    d.submit("waits", tokens(8, 50));
    for (let i = 0; i < 5; i++) expect(idsOf(d.step())).toEqual(["decoder"]);
  });

  test("counts rounds that could do nothing, for the one who watches", () => {
    const d = new Driver({ P: 4, pool: 8, B: 0, groups: [F(4)] });
    d.submit("a", tokens(4));
    for (let i = 0; i < 3; i++) d.plan();
    expect(d.scheduler.gauges().stalledRounds).toBe(3);
  });
});

describe("siblings of one prompt", () => {
  test("hit it from the plan after its first decode step on", () => {
    const d = new Driver({ P: 4, pool: 40, enableMixedPrefillDecode: true, groups: [F(4)] });
    const prompt = tokens(17);
    d.submit("first", prompt);
    d.step();
    const decode = d.step();
    expect(decode.forward.rows[0].isFirstDecode).toBe(true);
    d.submit("second", prompt);
    const plan = d.step();
    expect(plan.forward.rows.find((row) => row.requestId === "second")?.begin).toBe(16);
    expect(d.scheduler.hitTokensOf(d.handle("second"))).toEqual({ device: 16, host: 0, storage: 0 });
  });
});
