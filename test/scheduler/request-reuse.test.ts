/** Requests whose object served another one before: nothing of the one reaches the other. */
import { describe, expect, test } from "bun:test";
import { NewPromptScan } from "../../src/scheduler/new-prompt-scan";
import { Request, requestState } from "../../src/scheduler/request";
import { RequestBook } from "../../src/scheduler/request-book";
import { Scheduler } from "../../src/scheduler/scheduler";
import { configOf, F, tokens } from "./driver";

const spec = (requestId: string) => ({ requestId, tokens: Int32Array.of(1, 2, 3) });

function bookWith(...ids: readonly string[]): { book: RequestBook; requests: Request[] } {
  const book = new RequestBook(1, 4);
  return { book, requests: ids.map((id) => book.add(spec(id), requestState.submitted)) };
}

function end(book: RequestBook, request: Request): void {
  book.moveTo(request, requestState.finished);
  book.dropFinished();
}

describe("a request in a used object", () => {
  test("equals one in a new object but for the count of admissions", () => {
    const { book, requests } = bookWith("a");
    const [used] = requests as [Request];
    Object.assign(used, { slot: 3, accessEpoch: 9, windowBegin: 1, windowEnd: 2, resultsInFlight: 1 });
    Object.assign(used, { promotionBoundary: 4, lastPlanId: 8, decodeReserveTokens: 2, specCandidates: [5] });
    Object.assign(used, { retractionCount: 1, retractionEpoch: 6, hasRecoverableSnapshot: true });
    Object.assign(used, { resumesGeneration: true, landedTokens: 2, wasAdmitted: true, deviceHitTokens: 1 });
    Object.assign(used, { hostHitTokens: 1, storageHitTokens: 1, admissionSerial: 7, hasNamespace: true });
    used.stateBoundaries.push(64);
    used.completed.numPages = 2;
    end(book, used);
    const again = book.add({ ...spec("b"), maxNewTokens: 5 }, requestState.submitted);
    expect(again).toBe(used);
    const fresh = new Request(2, { ...spec("b"), maxNewTokens: 5 }, 1);
    fresh.admissionSerial = 7;
    fresh.stateBoundaries.reserve(again.stateBoundaries.items.length);
    fresh.stateBoundaries.items.set(again.stateBoundaries.items);
    expect(again).toEqual(fresh);
  });

  test("is not taken for the prompt that was refused in the same object", () => {
    const { book, requests } = bookWith("a", "b");
    const [a] = requests as [Request];
    const scan = new NewPromptScan();
    expect(scan.start(book.newPrompts, 1, 64)).toBe(a);
    scan.refused(a, true);
    expect(scan.start(book.newPrompts, 1, 64)).toBe(a.next);
    end(book, a);
    const c = book.add(spec("c"), requestState.submitted);
    expect(c).toBe(a);
    expect(scan.start(book.newPrompts, 1, 64)?.id).toBe("b");
    expect(scan.firstShort).toBeUndefined();
  });

  test("gets no token of a result that was out when the other one ended", () => {
    const scheduler = new Scheduler(configOf({ P: 2, pool: 31, T: 8, depth: 1, groups: [F(2)] }));
    const result = (planId: number, token: number) =>
      scheduler.advance([
        { kind: "forwardResult", planId, tokenCounts: Int32Array.of(1), tokens: Int32Array.of(token) },
      ]);
    const [a] = scheduler.submit([{ requestId: "a", tokens: Int32Array.from(tokens(4)) }]) as [number];
    const first = scheduler.nextExecutionPlan().planId;
    const second = scheduler.nextExecutionPlan().planId;
    result(first, 70);
    scheduler.advance([{ kind: "finish", request: a }]);
    scheduler.nextExecutionPlan();
    const [b] = scheduler.submit([{ requestId: "b", tokens: Int32Array.from(tokens(4, 9)) }]) as [number];
    const third = scheduler.nextExecutionPlan();
    expect(third.forward.rows.map((row) => row.requestId)).toEqual(["b"]);
    result(second, 71);
    expect([scheduler.tokenCountOf(a), scheduler.tokenCountOf(b)]).toEqual([-1, 4]);
    result(third.planId, 72);
    expect(scheduler.tokenCountOf(b)).toBe(5);
  });
});
