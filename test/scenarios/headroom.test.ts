/** Generation that is paid for in advance, and what a retraction does to it. */
import { describe, expect } from "bun:test";
import { Int32BufferPool } from "../../src/cache/core/int32-buffer-pool";
import type { RequestSpec } from "../../src/scheduler/config";
import { admissionHeadroom, isCovered } from "../../src/scheduler/headroom";
import { Request, requestState } from "../../src/scheduler/request";
import { Driver, extent, F, idsOf, rowOf, type Setup, tableOf, tokens, W } from "../scheduler/driver";
import { scenario } from "./scenario";

const twoFull = (pool: number, more: Partial<Setup> = {}) =>
  new Driver({ P: 2, pool, groups: [F(2), F(2)], ...more });

const requestOf = (prompt: number, maxNewTokens: number) => {
  const spec: RequestSpec = { requestId: "r", tokens: new Int32Array(prompt), maxNewTokens };
  return new Request(1, spec, 1);
};
const generate = (request: Request, count: number) => {
  const buffers = new Int32BufferPool();
  for (let i = 0; i < count; i++) request.tokens.append(1, buffers);
  return buffers;
};

describe("prepaid generation", () => {
  scenario(482)("is paid at a first admission, in full history", () => {
    const d = twoFull(14);
    d.submit("a", tokens(6), { maxNewTokens: 5 });
    d.submit("b", tokens(4, 50));
    expect(idsOf(d.plan())).toEqual(["a"]);
    expect(d.free).toBe(14 - 2 * Math.ceil(11 / 2));
  });

  scenario(483)("is not paid on a prefill worker", () => {
    const d = twoFull(14, { role: "prefill" });
    d.submit("heavy", tokens(6), { maxNewTokens: 6000 });
    d.send({ kind: "bootstrapped", request: d.handle("heavy") });
    expect(idsOf(d.plan())).toEqual(["heavy"]);
    expect(d.free).toBe(14 - 2 * Math.ceil(7 / 2));
  });

  scenario(484)("grows with every retraction up to what is left", () => {
    const request = requestOf(4, 6000);
    const headrooms = [0, 1, 2].map((count) => {
      request.retractionCount = count;
      return admissionHeadroom(request);
    });
    expect(headrooms).toEqual([4096, 6000, 6000]);
  });

  scenario(485)("counts what was generated off what is left", () => {
    const request = requestOf(4, 6000);
    const buffers = generate(request, 1000);
    expect([admissionHeadroom(request), isCovered(request)]).toEqual([4096, false]);
    request.retractionCount = 1;
    expect(admissionHeadroom(request)).toBe(5000);
    request.tokens.rebase(buffers);
    request.prefillTokens = request.tokens.size;
    expect([request.prefillTokens, admissionHeadroom(request), isCovered(request)]).toEqual([
      1004,
      5000,
      true,
    ]);
  });

  scenario(486)("does not cover a request whose budget at its admission was larger", () => {
    const request = requestOf(4, 6000);
    generate(request, 4097);
    expect([admissionHeadroom(request), isCovered(request)]).toEqual([1903, false]);
  });

  scenario(487)("is nothing for a request that declared nothing", () => {
    const request = requestOf(4, 0);
    for (const count of [0, 5]) {
      request.retractionCount = count;
      expect([admissionHeadroom(request), isCovered(request)]).toEqual([0, false]);
    }
  });
});

describe("coming back after a retraction", () => {
  scenario(473)("finds what was published, and nothing that a failed admission only prepared", () => {
    const d = twoFull(12);
    d.submit("r1", tokens(4));
    d.submit("r2", tokens(4, 50));
    d.plan();
    for (let i = 0; i < 2; i++) {
      d.result("r1", 40 + i);
      d.result("r2", 140 + i);
      d.plan();
    }
    d.result("r1", 42);
    expect(d.plan().isEmpty).toBe(true);
    d.result("r2", 142);
    d.finish("r2");
    expect(idsOf(d.plan())).toEqual(["r1"]);
    d.result("r1", 43);
    d.finish("r1");
    d.submit("r3", [...tokens(4), 40, 41, 900, 901]);
    expect(extent(d.plan(), "r3").prefix).toBe(6);
  });

  scenario(474)("may still be needed when the prepaid part is spent", () => {
    const d = new Driver({
      P: 4096,
      pool: 4,
      T: 8192,
      w: 1024,
      B: 2,
      disablePrefixCache: true,
      groups: [F(4096)],
    });
    for (const [i, id] of ["a", "b"].entries()) d.submit(id, tokens(4096, i * 5000), { maxNewTokens: 6000 });
    expect(idsOf(d.plan())).toEqual(["a", "b"]);
    expect(d.free).toBe(0);
    d.result("a", 1);
    d.result("b", 1);
    for (let i = 0; i < 4; i++) {
      expect(idsOf(d.plan())).toEqual(["a", "b"]);
      for (const id of ["a", "b"]) {
        d.result(id, ...tokens(1024));
        d.send({ kind: "updateReserve", request: d.handle(id), numTokens: 1024 });
      }
    }
    expect(d.plan().isEmpty).toBe(true);
    expect([d.waiting, d.decoding, d.free]).toEqual([1, 1, 2]);
    d.finish("b");
    const back = d.plan();
    expect(idsOf(back)).toEqual(["a"]);
    expect(extent(back, "a").prefix + extent(back, "a").input).toBeGreaterThanOrEqual(4097);
    d.result("a", ...(rowOf(back, "a").completesPrompt ? [1] : []));
    d.abort("a");
    d.plan();
    d.expectAllFree();
  });

  scenario(475)("waits without retracting anybody when it does not fit", () => {
    const d = twoFull(12, { host: 31 });
    d.submit("r1", tokens(4));
    d.submit("r2", tokens(4, 50));
    while (d.waiting === 0 || d.scheduler.gauges().retractions === 0) d.ackWrites(d.step());
    const { retractions } = d.scheduler.gauges();
    const decoding = d.decoding;
    for (let round = 0; round < 4; round++) {
      d.ackWrites(d.step());
      expect([d.waiting, d.decoding, d.scheduler.gauges().retractions]).toEqual([1, decoding, retractions]);
    }
  });

  scenario(476)("reaches past the request's own bound for what it had computed", () => {
    const d = twoFull(12, { host: 31 });
    d.submit("r1", tokens(4), { maxCachedPrefixTokens: 0 });
    d.submit("r2", tokens(4, 50));
    expect(extent(d.step(), "r1")).toMatchObject({ prefix: 0, input: 4 });
    while (d.waiting === 0) d.ackWrites(d.step((id) => (id === "r1" ? 40 : 140)));
    expect(d.scheduler.tokenCountOf(d.handle("r1"))).toBe(7);
    expect(idsOf(d.step())).toEqual(["r2"]);
    d.finish("r2");
    const back = d.plan();
    expect(rowOf(back, "r1").prefillLength).toBe(7);
    expect(extent(back, "r1")).toEqual({ prefix: 6, input: 1, replay: 0 });
  });

  const cappedBeside = (lands: boolean) => {
    const d = twoFull(30, { T: 8 });
    d.submit("twin", tokens(16));
    d.step();
    d.step();
    d.step();
    d.submit("capped", tokens(16), { maxCachedPrefixTokens: 0 });
    const first = d.plan();
    expect(extent(first, "capped")).toMatchObject({ prefix: 0, input: 8 });
    if (lands) d.results(first);
    return d;
  };

  scenario(477)("reaches no deeper than the chunks that landed", () => {
    const d = cappedBeside(true);
    d.plan();
    for (let i = 0; d.waiting === 0 && i < 4; i++) d.step();
    expect(d.waiting).toBe(1);
    d.abort("twin");
    const back = d.step();
    expect(extent(back, "capped")).toMatchObject({ prefix: 8, input: 8 });
  });

  scenario(478)("reaches nothing when no chunk landed", () => {
    const d = cappedBeside(false);
    d.send({ kind: "retract", request: d.handle("capped") });
    expect(d.waiting).toBe(1);
    d.abort("twin");
    expect(extent(d.plan(), "capped")).toMatchObject({ prefix: 0, input: 8 });
  });

  scenario(479)("keeps to the bound of a request that was never admitted", () => {
    const hit = (maxCachedPrefixTokens?: number) => {
      const d = new Driver({ P: 2, pool: 63, groups: [F(2), W(32, 2)] });
      d.submit("seed", tokens(12));
      const table = tableOf(d.step(), "seed");
      d.finish("seed");
      d.submit("a", tokens(12), maxCachedPrefixTokens === undefined ? {} : { maxCachedPrefixTokens });
      const plan = d.plan();
      return { ...extent(plan, "a"), sharesThird: tableOf(plan, "a")[2] === table[2] };
    };
    expect(hit(5)).toEqual({ prefix: 4, input: 8, replay: 0, sharesThird: false });
    expect(hit(0)).toMatchObject({ prefix: 0, input: 12 });
    expect(hit()).toMatchObject({ prefix: 10, input: 2 });
    expect(() => hit(-1)).toThrow("maxCachedPrefixTokens");
  });

  const halfWay = () => {
    const d = twoFull(18, { T: 8, host: 0 });
    d.submit("done", tokens(4));
    d.step();
    d.submit("half", tokens(16, 50));
    const chunk = d.plan();
    d.submit("waiting", tokens(2, 90));
    return { d, chunk };
  };

  scenario(480)("offers only what was computed of an incomplete prompt", () => {
    const { d, chunk } = halfWay();
    d.results(chunk);
    d.step();
    expect(d.waiting).toBeGreaterThan(1);
    d.finish("done");
    for (let i = 0; i < 4; i++) {
      const plan = d.step();
      const row = plan.forward.rows.find((candidate) => candidate.requestId === "half");
      if (row === undefined) continue;
      expect(row.begin).toBeLessThanOrEqual(8);
      return;
    }
    throw new Error("half never came back");
  });

  scenario(481)("does not happen to a prompt whose chunk is out", () => {
    const { d, chunk } = halfWay();
    const before = d.waiting;
    d.step();
    expect(d.waiting).toBe(before);
    d.results(chunk);
    d.step();
    expect([d.decoding, d.waiting]).toEqual([1, 2]);
  });
});

describe("results and retraction on a prefill worker", () => {
  scenario(488)("leave an interrupted prompt without a claim to resume first", () => {
    const d = twoFull(30, { T: 8 });
    d.submit("a", tokens(16));
    d.step();
    d.send({ kind: "retract", request: d.handle("a") });
    d.submit("b", tokens(4, 50));
    expect(idsOf(d.plan())[0]).toBe("a");
  });

  scenario(489)("count the chunks that are still out when the token came first", () => {
    const d = new Driver({ P: 4, pool: 31, T: 4, role: "prefill", groups: [F(4)] });
    d.submit("a", tokens(8));
    d.send({ kind: "bootstrapped", request: d.handle("a") });
    d.plan();
    d.plan();
    d.result("a", 42);
    expect(d.prefilling).toBe(1);
    const handOver = d.plan();
    expect(handOver.remoteDecode.rows.map((row) => row.resultsInFlight)).toEqual([1]);
    d.result("a");
    expect(() => d.result("a")).toThrow("nobody waits for");
  });

  scenario(490)("give the blocks of a prompt that awaits its token back", () => {
    const d = new Driver({ P: 4, pool: 8, role: "prefill", groups: [F(4)] });
    d.submit("a", tokens(4));
    d.send({ kind: "bootstrapped", request: d.handle("a") });
    d.plan();
    d.send({ kind: "retract", request: d.handle("a") });
    expect([d.free, d.waiting, d.scheduler.tokenCountOf(d.handle("a"))]).toEqual([8, 1, 4]);
  });

  scenario(491)("wait for a pinned store before anybody is retracted", () => {
    const d = new Driver({
      P: 2,
      pool: 12,
      T: 4,
      host: 12,
      disablePrefixCache: true,
      groups: [F(2), W(4, 2)],
    });
    d.submit("a", tokens(12));
    d.step();
    const two = d.step();
    expect(two.writeBacks.map((op) => [op.numTransfers, op.sourcePinned])).toEqual([[4, true]]);
    expect(d.free).toBe(4);
    const stuck = d.plan();
    expect([stuck.isEmpty, d.waiting, d.prefilling]).toEqual([true, 0, 1]);
    d.ackWrites(two);
    expect(d.scheduler.gauges().hostCachedBlocks).toBe(4);
    const three = d.step();
    expect(rowOf(three, "a").begin).toBe(8);
    expect([three.writeBacks.length, d.free]).toEqual([1, 0]);
    d.ackWrites(three);
    const decode = d.step();
    d.ackWrites(decode);
    d.finish("a");
    d.ackWrites(d.plan());
    expect([d.scheduler.gauges().hostCachedBlocks, d.free]).toEqual([12, 12]);
  });
});

describe("the pool of request slots", () => {
  scenario(337)("gates admission without leaking a block", () => {
    const d = new Driver({ P: 2, pool: 31, B: 0, groups: [F(2)] });
    d.submit("a", tokens(4));
    expect([d.plan().isEmpty, d.free]).toEqual([true, 31]);
    d.abort("a");
    d.plan();
    expect(d.scheduler.handleOf("a")).toBeUndefined();
  });

  scenario(336)("is returned at a retraction, after which the request computes from its whole text", () => {
    const request = requestOf(4, 0);
    const buffers = generate(request, 3);
    request.state = requestState.decoding;
    expect(request.numComputedTokens).toBe(6);
    request.tokens.rebase(buffers);
    expect([request.tokens.size, Array.from(request.tokens.window).length]).toEqual([7, 7]);
  });
});
