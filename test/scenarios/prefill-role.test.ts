/** The prefill side of a disaggregated deployment, and the events about what it caches. */
import { describe, expect } from "bun:test";
import { Driver, extent, F, idsOf, M, rowOf, type Setup, shape, tableOf, tokens } from "../scheduler/driver";
import { scenario } from "./scenario";

const prefiller = (more: Partial<Setup> = {}) =>
  new Driver({ P: 4, pool: 63, T: 64, role: "prefill", groups: [F(4), M(4)], ...more });

function boot(d: Driver, id: string, prompt: readonly number[]): void {
  d.submit(id, prompt);
  d.send({ kind: "bootstrapped", request: d.handle(id) });
}

const succeed = (d: Driver, id: string) => d.send({ kind: "transferSucceeded", request: d.handle(id) });
const handedOver = (plan: ReturnType<Driver["plan"]>) => plan.remoteDecode.rows.map((row) => row.requestId);

describe("the prefill role", () => {
  scenario(465)("hands a prompt over when its token is there, candidates included", () => {
    const d = prefiller();
    boot(d, "r1", tokens(10));
    const prefill = d.plan();
    expect(extent(prefill, "r1")).toEqual({ prefix: 0, input: 10, replay: 0 });
    expect(shape(tableOf(prefill, "r1", 1))).toBe(".xx");
    const waiting = d.plan();
    expect([waiting.isEmpty, handedOver(waiting)]).toEqual([true, []]);
    d.send({ kind: "extendResult", request: d.handle("r1"), tokens: [42], specCandidates: [42, 7, 9] });
    const handOver = d.plan();
    expect(handOver.remoteDecode.rows).toMatchObject([
      { requestId: "r1", decodeInputId: 42, specCandidates: [42, 7, 9] },
    ]);
    expect([handOver.remoteDecode.numPrefills, idsOf(handOver)]).toEqual([0, []]);
  });

  scenario(466)("lets nobody touch the blocks before the peer has them", () => {
    const d = prefiller();
    const isPinned = () => d.scheduler.isTransferInFlight(d.handle("r1"));
    d.submit("r1", tokens(10));
    expect(isPinned()).toBe(false);
    d.send({ kind: "bootstrapped", request: d.handle("r1") });
    expect(isPinned()).toBe(false);
    d.plan();
    expect([isPinned(), d.scheduler.clearL1Cache()]).toEqual([true, false]);
    d.result("r1", 42);
    d.plan();
    expect(isPinned()).toBe(true);
    expect(() => d.finish("r1")).toThrow("peer transfers");
    expect(isPinned()).toBe(true);
    succeed(d, "r1");
    expect(isPinned()).toBe(false);
    d.plan();
    expect(d.scheduler.clearL1Cache()).toBe(true);
  });

  scenario(467)("computes the next prompt beside the hand-over", () => {
    const d = prefiller();
    boot(d, "r1", tokens(10));
    d.plan();
    boot(d, "r2", tokens(70, 200));
    const beside = d.plan();
    expect([idsOf(beside), handedOver(beside), rowOf(beside, "r2").inputLength]).toEqual([["r2"], [], 64]);
    d.result("r2");
    d.result("r1", 42);
    const plan = d.plan();
    expect([handedOver(plan), idsOf(plan)]).toEqual([["r1"], ["r2"]]);
    expect(extent(plan, "r2")).toMatchObject({ prefix: 64, input: 6 });
  });
});

describe("events about cached boundaries", () => {
  scenario(430)("cancel out when a boundary is evicted and published again between two drains", () => {
    const d = prefiller({ P: 2, T: 9, pool: 7, enableKvCacheEvents: true, groups: [F(2)] });
    boot(d, "seed", tokens(5));
    boot(d, "dup", [...tokens(4), ...tokens(6, 50)]);
    const one = d.plan();
    expect(one.forward.rows.map((row) => [row.requestId, row.inputLength])).toEqual([
      ["seed", 5],
      ["dup", 4],
    ]);
    d.result("seed", 6);
    d.result("dup");
    const two = d.plan();
    expect([handedOver(two), idsOf(two)]).toEqual([["seed"], []]);
    const stored = d.scheduler.drainKvEvents();
    expect(stored.map((event) => event.kind)).toEqual(["blockStored", "blockStored"]);
    succeed(d, "seed");
    const three = d.plan();
    expect(extent(three, "dup")).toMatchObject({ prefix: 4, input: 6 });
    expect(d.scheduler.drainKvEvents()).toEqual([]);
    d.result("dup", 99);
    d.plan();
    succeed(d, "dup");
    d.plan();
    d.scheduler.drainKvEvents();
    expect(d.scheduler.clearL1Cache()).toBe(true);
    const removed = d.scheduler.drainKvEvents().flatMap((event) => [...event.blockHashes]);
    for (const event of stored) expect(removed).toContain(event.blockHashes[0]);
  });

  scenario(431)("name the parent before the child when a run is published again", () => {
    const d = prefiller({ P: 4, T: 13, pool: 8, enableKvCacheEvents: true, groups: [F(2, 2), F(4)] });
    const run = (id: string, prompt: number[]) => {
      boot(d, id, prompt);
      d.plan();
      d.result(id, 9);
      d.plan();
      succeed(d, id);
      d.plan();
    };
    run("seed", tokens(12));
    const chain = d.scheduler.drainKvEvents().flatMap((event) => [...event.blockHashes]);
    expect(chain).toHaveLength(3);
    run("filler1", tokens(8, 100));
    d.scheduler.drainKvEvents();
    run("filler2", tokens(8, 200));
    run("dup", tokens(12));
    const events = d.scheduler.drainKvEvents();
    const order = events
      .filter((event) => event.kind === "blockStored")
      .map((event) => chain.indexOf(event.blockHashes[0]))
      .filter((position) => position >= 0);
    expect(order).toEqual([...order].sort());
    expect(order.length).toBeGreaterThan(0);
  });

  const fused = (more: Partial<Setup>) =>
    new Driver({ P: 2, pool: 2, enableKvCacheEvents: true, groups: [F(2)], ...more });
  const life = (d: Driver, id: string, prompt: number[]) => {
    d.submit(id, prompt);
    d.step();
    d.step();
    d.finish(id);
    d.plan();
  };

  scenario(271)("tell a stored page once", () => {
    const d = fused({});
    life(d, "a", tokens(2));
    expect(d.scheduler.drainKvEvents()).toMatchObject([
      { kind: "blockStored", tokenIds: [1, 2], blockSize: 2, parentBlockHash: undefined },
    ]);
    expect(d.scheduler.drainKvEvents()).toEqual([]);
  });

  scenario(272)("tell a page that an admission evicted", () => {
    const d = fused({});
    life(d, "a", tokens(2));
    const [stored] = d.scheduler.drainKvEvents();
    d.submit("b", tokens(2, 50));
    d.step();
    expect(d.scheduler.drainKvEvents()).toEqual([{ kind: "blockRemoved", blockHashes: stored.blockHashes }]);
  });

  scenario(273, 274)(
    "tell a page once however many blocks it has, and its loss with the first of them",
    () => {
      const d = fused({ groups: [F(1, 2)], pool: 3 });
      life(d, "a", tokens(2));
      expect(d.scheduler.drainKvEvents()).toMatchObject([{ kind: "blockStored", tokenIds: [1, 2] }]);
      const e = fused({ groups: [F(1, 2)], pool: 3 });
      life(e, "seed", tokens(4));
      expect(e.scheduler.drainKvEvents().map((event) => event.kind)).toEqual(["blockStored", "blockStored"]);
      e.submit("other", tokens(4, 50));
      e.step();
      const events = e.scheduler.drainKvEvents();
      expect(events.map((event) => [event.kind, event.blockHashes.length])).toEqual([
        ["blockRemoved", 1],
        ["blockRemoved", 1],
      ]);
    },
  );
});
