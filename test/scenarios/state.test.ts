/** Models with recurrent state: prefill, promotion, and the published end of a prompt. */
import { describe, expect } from "bun:test";
import {
  Driver,
  extent,
  F,
  idsOf,
  M,
  rowOf,
  type Setup,
  shape,
  tableOf,
  tokens,
  zeroed,
} from "../scheduler/driver";
import { scenario } from "./scenario";

const fixture = (more: Partial<Setup> = {}) =>
  new Driver({ P: 4, pool: 63, T: 6, disablePrefixCache: true, groups: [F(4), M(4)], ...more });

describe("prefill of a model with state", () => {
  scenario(301)("ends every incomplete chunk at a prefix boundary", () => {
    const d = fixture();
    d.submit("a", tokens(12));
    expect([0, 1, 2].map(() => extent(d.step(), "a"))).toEqual([
      { prefix: 0, input: 4, replay: 0 },
      { prefix: 4, input: 4, replay: 0 },
      { prefix: 8, input: 4, replay: 0 },
    ]);
  });

  scenario(302)("runs two prompts with unaligned ends whole, in one step", () => {
    const d = fixture({ T: 64, disablePrefixCache: false });
    d.submit("a", tokens(10));
    d.submit("b", tokens(10, 50));
    const plan = d.plan();
    expect(plan.forward.rows.map((row) => row.inputLength)).toEqual([10, 10]);
    for (const id of ["a", "b"]) {
      expect(shape(tableOf(plan, id, 1))).toBe(".xxx");
      expect(rowOf(plan, id).internalStateBoundary).toBe(8);
    }
  });

  scenario(303, 401)("refuses a prompt whose snapshots do not fit together", () => {
    const only = { groups: [M(4)], T: 8, B: 1 };
    expect(fixture({ ...only, pool: 2, disablePrefixCache: false }).scheduler.maxSingleRequestTokens).toBe(0);
    const d = fixture({ ...only, pool: 2 });
    expect(d.scheduler.maxSingleRequestTokens).toBe(5);
    expect(() => d.submit("a", tokens(6))).toThrow("can carry 5");
  });

  scenario(402)("counts the input that a later chunk still reads", () => {
    const only = { groups: [M(4)], T: 8 };
    const three = fixture({ ...only, pool: 3 });
    expect(three.scheduler.maxSingleRequestTokens).toBe(9);
    expect(() => three.submit("a", tokens(14), { maxNewTokens: 1 })).toThrow("can carry 9");
    const four = fixture({ ...only, pool: 4 });
    four.submit("a", tokens(14), { maxNewTokens: 1 });
    expect(rowOf(four.step(), "a").inputLength).toBe(8);
    expect(rowOf(four.step(), "a").inputLength).toBe(6);
  });

  scenario(304, 403)("counts the snapshots of a short prompt's end with small state blocks", () => {
    const d = fixture({ groups: [M(1)], T: 8, pool: 3, disablePrefixCache: false });
    expect(d.scheduler.maxSingleRequestTokens).toBe(5);
    expect(() => d.submit("a", tokens(6))).toThrow("can carry 5");
  });

  scenario(305)("is not cut on a prefill worker either", () => {
    const d = fixture({ T: 64, role: "prefill", disablePrefixCache: false });
    d.submit("a", tokens(10));
    d.send({ kind: "bootstrapped", request: d.handle("a") });
    expect(rowOf(d.plan(), "a").inputLength).toBe(10);
  });

  scenario(306)("stays whole when a peer computes it", () => {
    const d = fixture({ T: 64, role: "decode" });
    d.submit("a", tokens(10));
    d.send({ kind: "bootstrapped", request: d.handle("a") });
    const plan = d.plan();
    expect(plan.remotePrefill.rows.map((row) => [row.begin, row.inputLength])).toEqual([[0, 10]]);
    expect(plan.forward.rows).toEqual([]);
  });

  scenario(307)("secures the snapshot that resumes the same prompt, its end, and the room to grow", () => {
    const d = fixture({ T: 12 });
    d.submit("a", tokens(12));
    const plan = d.step();
    expect(tableOf(plan, "a", 0)).toHaveLength(4);
    expect(shape(tableOf(plan, "a", 1))).toBe(".xxx");
    expect(zeroed(plan, 1)).toEqual(tableOf(plan, "a", 1).slice(1));
    expect(rowOf(plan, "a").internalStateBoundary).toBe(8);
    expect(zeroed(d.step(), 1)).toEqual([]);
  });

  scenario(308, 468)("reads its input, writes its output and banks growth in a last chunk", () => {
    const d = fixture({ T: 12, depth: 1 });
    d.submit("a", tokens(16));
    const one = d.step();
    expect(rowOf(one, "a").inputLength).toBe(12);
    expect(shape(tableOf(one, "a", 1))).toBe("..x");
    const two = d.step();
    expect(rowOf(two, "a").inputLength).toBe(4);
    expect(shape(tableOf(two, "a", 1))).toBe("..xxx");
  });

  scenario(309)("leaves a whole page of a mixed budget to a waiting prompt", () => {
    const d = fixture({ T: 4, enableMixedPrefillDecode: true });
    d.submit("decoder", tokens(4));
    d.step();
    d.step();
    d.submit("new", tokens(8, 50));
    const plan = d.plan();
    expect(plan.forward.rows.map((row) => [row.requestId, row.inputLength])).toEqual([["new", 4]]);
  });

  scenario(310)("lets decodes use what is above that page", () => {
    const d = fixture({ T: 5, enableMixedPrefillDecode: true });
    d.submit("decoder", tokens(4));
    d.step();
    d.step();
    d.submit("new", tokens(8, 50));
    const plan = d.plan();
    expect(plan.forward.rows.map((row) => [row.requestId, row.inputLength])).toEqual([
      ["new", 4],
      ["decoder", 1],
    ]);
  });

  scenario(311)("needs a budget of at least one page", () => {
    expect(() => fixture({ T: 3 })).toThrow("maxScheduledTokens");
  });
});

describe("promotion", () => {
  const shared = (own: number) => [...tokens(8), ...tokens(3, own)];

  scenario(277, 432)("gives a third request the state at the prefix that two have shared", () => {
    const d = new Driver({ P: 2, pool: 127, groups: [F(2), M(2), M(2), M(2)] });
    const chunks = (id: string, prompt: number[]) => {
      d.submit(id, prompt);
      const seen: number[][] = [];
      for (;;) {
        const plan = d.step();
        const row = rowOf(plan, id);
        if (!row.isPrefill) break;
        seen.push([row.begin, row.size]);
      }
      d.finish(id);
      d.plan();
      return seen;
    };
    expect(chunks("seed", shared(100))).toEqual([[0, 11]]);
    expect(chunks("promote", shared(200))).toEqual([
      [0, 8],
      [8, 3],
    ]);
    expect(chunks("reuse", shared(300))).toEqual([[8, 3]]);
  });

  scenario(333, 334)("steers chunks until it is reached, and holds the prompts behind it back", () => {
    const d = new Driver({ P: 2, pool: 63, T: 4, groups: [F(2), M(2)] });
    d.submit("seed", tokens(12));
    d.runToEnd("seed");
    d.submit("first", [...tokens(6), ...tokens(6, 50)]);
    d.submit("second", tokens(6, 70));
    const sizes: number[][] = [];
    for (let i = 0; i < 3; i++) sizes.push(d.step().forward.rows.map((row) => row.begin + row.size));
    expect(sizes[0]).toEqual([4]);
    expect(sizes[1]).toEqual([6]);
    const wide = new Driver({ P: 2, pool: 63, T: 8, groups: [F(2), M(2)] });
    wide.submit("seed", tokens(12));
    wide.runToEnd("seed");
    wide.submit("first", [...tokens(6), ...tokens(6, 50)]);
    wide.submit("second", tokens(6, 70));
    const plan = wide.plan();
    expect(idsOf(plan)).toEqual(["first"]);
    expect(rowOf(plan, "first").inputLength).toBe(6);
  });
});

describe("the published end of a prompt", () => {
  scenario(469)("is never a state of decode, however the tokens were accepted", () => {
    for (const accepted of [
      [4, 4],
      [1, 3, 4],
      [2, 2, 2, 2],
    ]) {
      for (const finishes of [true, false]) {
        const d = new Driver({ P: 128, pool: 63, T: 1024, w: 4, groups: [F(128), M(128)] });
        d.submit("a", tokens(124));
        d.step();
        let size = 125;
        for (const count of accepted) {
          d.plan();
          d.result("a", ...tokens(count, 200 + size));
          d.send({ kind: "updateReserve", request: d.handle("a"), numTokens: count });
          size += count;
        }
        if (finishes) d.finish("a");
        d.submit("b", [...tokens(124), 7, ...tokens(3, 325), ...tokens(60, 900)]);
        const row = d.plan().forward.rows.find((candidate) => candidate.requestId === "b");
        expect(row?.begin).toBe(0);
        if (finishes) expect(d.scheduler.gauges().cachedBlocks).toBe(Math.floor((size - 1) / 128));
      }
    }
  });

  scenario(470)("keeps a decoder's input snapshot live and drops the older ones", () => {
    const d = new Driver({ P: 4, pool: 64, w: 1, groups: [F(4), M(4)] });
    d.submit("a", tokens(3));
    d.step();
    for (let i = 0; i < 14; i++) {
      const plan = d.step();
      const computed = rowOf(plan, "a").begin;
      const table = tableOf(plan, "a", 1);
      const input = Math.floor((computed - 1) / 4);
      expect(shape(table).slice(0, input)).toBe(".".repeat(input));
      expect(table[input]).toBeGreaterThan(0);
    }
    const prompt = [...tokens(3), ...Array.from({ length: 9 }, () => 7), 99];
    d.finish("a");
    d.submit("b", prompt);
    expect(extent(d.plan(), "b").prefix).toBe(0);
  });

  scenario(471)("counts results that come back to back, one frontier a result", () => {
    for (const hasState of [true, false]) {
      for (const finishes of [true, false]) {
        for (const [share, expected] of [
          [4, 4],
          [8, 8],
        ]) {
          const groups = hasState ? [F(4), M(4)] : [F(4)];
          const d = new Driver({ P: 4, pool: 127, w: 4, depth: 1, groups });
          d.submit("a", tokens(3));
          d.plan();
          d.plan();
          d.result("a", 4);
          d.result("a", 5, 6, 7, 8);
          d.send({ kind: "updateReserve", request: d.handle("a"), numTokens: 4 });
          const plan = d.plan();
          d.results(plan, () => 9);
          if (finishes) d.finish("a");
          else d.plan();
          d.submit("b", [...tokens(share), ...tokens(4, 700)]);
          const row = d.plan().forward.rows.find((candidate) => candidate.requestId === "b");
          const published = finishes || share === 4 ? expected : expected;
          expect(row?.begin).toBe(hasState ? 0 : published);
        }
      }
    }
  });

  scenario(472)("prepays a prompt and its generation in full history only", () => {
    const d = new Driver({
      P: 2,
      pool: 63,
      T: 4,
      disablePrefixCache: true,
      groups: [F(2), { ...F(2), retention: "slidingWindow", slidingWindowTokens: 4 }],
    });
    d.submit("a", tokens(16), { maxNewTokens: 6 });
    const plan = d.plan();
    expect(rowOf(plan, "a").inputLength).toBe(4);
    expect(tableOf(plan, "a", 0)).toHaveLength(11);
    expect(tableOf(plan, "a", 1)).toHaveLength(2);
  });
});
