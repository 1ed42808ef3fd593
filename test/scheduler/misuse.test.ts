/** Every misuse has one clear error and changes nothing. */
import { describe, expect, test } from "bun:test";
import { GranaryError } from "../../src/assert";
import type { SchedulerEvent } from "../../src/scheduler/events";
import { Driver, F, tokens } from "./driver";

type Stage = "submitted" | "prefilling" | "prefillDone" | "decoding" | "retracted";

/** A request "a" in a given state, beside nothing. */
function inStage(stage: Stage): Driver {
  const d = new Driver({ P: 2, pool: 31, T: 4, groups: [F(2)] });
  d.submit("a", tokens(stage === "prefillDone" || stage === "decoding" ? 4 : 8));
  if (stage === "submitted") return d;
  d.step();
  if (stage === "decoding") d.step();
  if (stage === "retracted") d.send({ kind: "retract", request: d.handle("a") });
  return d;
}

const expectRefused = (d: Driver, event: SchedulerEvent, code: string) => {
  const before = [d.scheduler.gauges(), d.scheduler.tokenCountOf(1)];
  let error: unknown;
  try {
    d.send(event);
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(GranaryError);
  expect((error as GranaryError).code).toBe(code);
  expect([d.scheduler.gauges(), d.scheduler.tokenCountOf(1)]).toEqual(before);
};

describe("an event that a state does not admit", () => {
  for (const stage of ["submitted", "prefilling"] as const) {
    test(`finish while ${stage} is refused and changes nothing`, () => {
      expectRefused(inStage(stage), { kind: "finish", request: 1 }, "invalidTransition");
    });
  }

  for (const stage of ["submitted", "retracted"] as const) {
    test(`a result while ${stage} is refused and changes nothing`, () => {
      expectRefused(inStage(stage), { kind: "extendResult", request: 1, tokens: [1] }, "invalidTransition");
    });
  }

  for (const stage of ["submitted", "prefilling", "prefillDone", "retracted"] as const) {
    test(`a reserve while ${stage} is refused and changes nothing`, () => {
      expectRefused(inStage(stage), { kind: "updateReserve", request: 1, numTokens: 1 }, "invalidTransition");
    });
  }

  test("a hand-over that was never admitted is refused and changes nothing", () => {
    expectRefused(inStage("submitted"), { kind: "transferSucceeded", request: 1 }, "invalidTransition");
    expectRefused(
      inStage("decoding"),
      { kind: "remotePrefillDone", request: 1, token: -1 },
      "invalidArgument",
    );
    expectRefused(
      inStage("submitted"),
      { kind: "remotePrefillDone", request: 1, token: 1 },
      "invalidTransition",
    );
  });

  test("a token for a chunk that does not complete its prompt is refused", () => {
    const d = new Driver({ P: 2, pool: 31, T: 4, groups: [F(2)] });
    d.submit("a", tokens(8));
    d.plan();
    expectRefused(d, { kind: "extendResult", request: 1, tokens: [9] }, "invalidTransition");
    d.result("a");
  });

  for (const [what, tokenCounts, numTokens, code] of [
    ["a token for a chunk in the middle of a prompt", [1, 1], 2, "invalidTransition"],
    ["more tokens than came", [2, 0], 1, "invalidArgument"],
    ["a negative number of tokens", [-1, 0], 1, "invalidArgument"],
    ["fewer rows than the plan has", [1], 1, "invalidArgument"],
  ] as const) {
    test(`a result that names ${what} is refused whole, and the right one still lands`, () => {
      const d = new Driver({ P: 2, pool: 31, T: 8, groups: [F(2)] });
      d.submit("whole", tokens(3));
      d.submit("part", tokens(20, 50));
      const { planId, forward } = d.plan();
      expect(forward.rows.map(({ completesPrompt }) => completesPrompt)).toEqual([true, false]);
      const result = (counts: readonly number[], values: readonly number[]): SchedulerEvent => ({
        kind: "forwardResult",
        planId,
        tokenCounts: Int32Array.from(counts),
        tokens: Int32Array.from(values),
      });
      expectRefused(d, result(tokenCounts, tokens(numTokens)), code);
      d.send(result([1, 0], [9]));
      expect(d.scheduler.tokenCountOf(d.handle("whole"))).toBe(4);
      expect(d.scheduler.tokenCountOf(d.handle("part"))).toBe(20);
    });
  }

  for (const value of [-1, 0.5, Number.NaN, 2 ** 31]) {
    test(`a count of ${value} is refused and changes nothing`, () => {
      const d = inStage("decoding");
      expectRefused(d, { kind: "finish", request: 1, keptTokens: value }, "invalidArgument");
      expectRefused(d, { kind: "updateReserve", request: 1, numTokens: value }, "invalidArgument");
    });
  }

  test("results for a plan that was never built, or twice, are refused", () => {
    const d = new Driver({ P: 2, pool: 31, groups: [F(2)] });
    d.submit("a", tokens(4));
    const plan = d.step();
    const again = { planId: plan.planId, tokenCounts: Int32Array.of(1), tokens: Int32Array.of(1) };
    expectRefused(d, { kind: "forwardResult", ...again }, "unknownPlan");
    expectRefused(d, { kind: "forwardResult", ...again, planId: 99 }, "unknownPlan");
    const next = d.plan();
    const short = { planId: next.planId, tokenCounts: new Int32Array(0), tokens: new Int32Array(0) };
    expectRefused(d, { kind: "forwardResult", ...short }, "invalidArgument");
  });
});

describe("an event for nobody", () => {
  test("is ignored: unknown requests, unknown operations, requests that are gone", () => {
    const d = inStage("decoding");
    d.finish("a");
    const gone: SchedulerEvent[] = [
      { kind: "finish", request: 1 },
      { kind: "abort", request: 1 },
      { kind: "retract", request: 1 },
      { kind: "extendResult", request: 1, tokens: [5] },
      { kind: "updateReserve", request: 1, numTokens: 3 },
      { kind: "transferFailed", request: 1 },
      { kind: "transferSucceeded", request: 1 },
      { kind: "remotePrefillDone", request: 1, token: 4 },
      { kind: "bootstrapped", request: 1 },
      { kind: "writeBackDone", opId: 7 },
      { kind: "loadBackDone", opId: 7, success: true },
    ];
    const before = d.scheduler.gauges();
    d.send(...gone, ...gone.map((event) => ("request" in event ? { ...event, request: 55 } : event)));
    expect(d.scheduler.gauges()).toEqual(before);
  });
});

describe("submitting", () => {
  test("frees an id for new use with the plan after its end, not before", () => {
    const d = inStage("decoding");
    d.finish("a");
    expect(() => d.submit("a", tokens(4))).toThrow("is in use");
    d.plan();
    expect(d.submit("a", tokens(4))).toBe(2);
  });

  test("names what is wrong with a request", () => {
    const d = new Driver({ P: 2, pool: 8, groups: [F(2)] });
    const submit = (more: object) => () => d.submit("b", tokens(4), more);
    expect(submit({ maxNewTokens: 2 ** 31 })).toThrow("maxNewTokens");
    expect(submit({ maxNewTokens: 1.5 })).toThrow("maxNewTokens");
    expect(submit({ maxCachedPrefixTokens: -1 })).toThrow("maxCachedPrefixTokens");
    expect(submit({ namespaceRoot: new Uint8Array(31) })).toThrow("namespaceRoot");
    expect(submit({ maxNewTokens: 100 })).toThrow("asks for 104 tokens");
    expect(() => d.scheduler.cacheGroupTotalBlocks("other")).toThrow("no cache group 'other'");
    expect(() => d.scheduler.registerStorageKeys({ groups: [0], hashes: [], pageOffsets: [0] })).toThrow(
      "equal length",
    );
  });
});

describe("a finish with kept tokens", () => {
  test("cuts what came after a stop, so that nobody ever hits it", () => {
    const d = new Driver({ P: 2, pool: 31, groups: [F(2)] });
    d.submit("a", tokens(4));
    for (let i = 0; i < 6; i++) d.step(() => 50 + i);
    d.send({ kind: "finish", request: 1, keptTokens: 1 });
    d.plan();
    d.submit("b", [...tokens(4), 50, 51, 52, 53, 54, 99]);
    const hit = d.plan().forward.rows[0].begin;
    expect(hit).toBeGreaterThanOrEqual(4);
    expect(hit).toBeLessThanOrEqual(8);
  });
});
