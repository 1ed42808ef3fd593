/** How large a chunk is and what it demands of each group. */
import { describe, expect } from "bun:test";
import { GroupDemand } from "../../src/cache/coordinator/group-demand";
import {
  alignChunk,
  keepWindow,
  minPrefillChunkTokens,
  prefillChunk,
  replayTokens,
} from "../../src/scheduler/chunk";
import { ChunkDemands, lastStateBoundary } from "../../src/scheduler/demands";
import { resolveSettings } from "../../src/scheduler/settings";
import { configOf, F, M, R, type Setup, W } from "../scheduler/driver";
import { scenario } from "./scenario";

const settings = (setup: Partial<Setup> & Pick<Setup, "P" | "groups">) =>
  resolveSettings(configOf({ pool: 63, ...setup }));
const replaying = settings({ P: 4, groups: [F(4), R(8, 4), R(2, 2)] });

describe("what a chunk demands", () => {
  scenario(407)("begins at the snapshot from which the next request resumes", () => {
    expect(lastStateBoundary(51300, true, 128)).toBe(51200);
    expect(lastStateBoundary(51300, true, 128) > 51200).toBe(false);
    expect(lastStateBoundary(51200, true, 128)).toBe(51072);
    expect(lastStateBoundary(51200, false, 128)).toBe(51200);
  });

  scenario(408)("reserves a snapshot's growth, or the verify width when that is more", () => {
    const reserve = (g: number, w: number) =>
      new ChunkDemands(settings({ P: 128, T: 8192, w, groups: [M(g)] })).forChunk(0, 130, true, 0)[0]
        .reserveTokens;
    expect([reserve(128, 1), reserve(2, 3)]).toEqual([128, 3]);
  });

  scenario(409)("is sparse for state and dense for history", () => {
    const demands = new ChunkDemands(settings({ P: 8, groups: [F(8), W(16, 8), M(4)] }));
    expect(demands.forChunk(0, 10, true, 0).map((demand) => [demand.tokens, demand.firstBlock])).toEqual([
      [10, -1],
      [10, -1],
      [10, 1],
    ]);
    expect(demands.forChunk(8, 10, true, 0)[2]).toMatchObject({ tokens: 10, firstBlock: 2 });
    expect(new GroupDemand().denseGrowth(3, 1)).toMatchObject({
      tokens: 3,
      firstBlock: -1,
      reserveTokens: 1,
    });
  });
});

describe("how large a chunk is", () => {
  scenario(
    410,
    233,
    234,
    235,
    236,
  )("is cut at a promotion and at prefix boundaries, unless it completes", () => {
    const cuts: [number, number, number, number, number, number][] = [
      [16, 24, 24, 4, 32, 16],
      [16, 24, 8, 4, 32, 8],
      [24, 16, 16, 4, 32, 8],
      [24, 4, 16, 4, 32, 4],
      [32, 16, 10, 8, 32, 8],
      [32, 16, 10, 4, 32, 8],
      [50432, 868, 868, 128, 0, 868],
      [50432, 868, 800, 128, 0, 768],
      [51200, 768, 868, 128, 0, 768],
      [51200, 100, 868, 128, 0, 100],
    ];
    for (const [first, unscheduled, budget, p, promotion, expected] of cuts) {
      expect([first, alignChunk(first, unscheduled, budget, p, promotion)]).toEqual([first, expected]);
    }
  });

  scenario(237, 238)("takes a ragged end along instead of splitting it off", () => {
    expect(alignChunk(16, 11, 16, 4, 0)).toBe(11);
    expect(alignChunk(24, 3, 16, 4, 0)).toBe(3);
  });

  scenario(411)("leaves a last chunk no smaller than the window", () => {
    const kept = [
      [30, 30],
      [64, 72],
      [64, 100],
      [64, 70],
      [10, 11],
      [4, 6],
      [0, 6],
    ].map(([chunk, unscheduled]) => keepWindow(chunk, unscheduled, 8));
    expect(kept).toEqual([30, 64, 64, 62, 3, 0, 0]);
    expect(keepWindow(64, 70, 0)).toBe(64);
  });

  scenario(412)("re-feeds the window of the widest replayable group, or the hit when that is shorter", () => {
    expect(replaying.replayWindowTokens).toBe(8);
    expect([0, 5, 8, 64].map((hit) => replayTokens(hit, 8))).toEqual([0, 5, 8, 8]);
  });

  scenario(413)("pays for what it re-feeds and keeps the window for the last chunk", () => {
    const chunk = (first: number, isFirst: boolean, unscheduled: number, budget: number, promotion = 0) =>
      prefillChunk(replaying, first, isFirst, unscheduled, budget, promotion);
    expect(chunk(16, true, 100, 40)).toBe(32);
    expect(chunk(4, true, 100, 40)).toBe(36);
    expect(chunk(16, true, 100, 8)).toBe(0);
    expect(chunk(16, false, 100, 40)).toBe(40);
    expect([chunk(0, true, 70, 64), chunk(62, false, 8, 64)]).toEqual([62, 8]);
    expect(chunk(16, false, 100, 40, 24)).toBe(8);
    expect(chunk(48, false, 8, 64, 52)).toBe(8);
    expect(chunk(48, false, 8, 6, 52)).toBe(0);
  });

  scenario(414)("is whatever the budget gives in a plain model", () => {
    const plain = settings({ P: 4, groups: [F(4)] });
    expect(prefillChunk(plain, 16, false, 100, 40, 0)).toBe(40);
    expect(prefillChunk(plain, 16, false, 30, 40, 0)).toBe(30);
    expect(prefillChunk(plain, 16, false, 100, 40, 24)).toBe(8);
  });

  scenario(415)("has a least budget where it may be cut to nothing", () => {
    expect(minPrefillChunkTokens(replaying)).toBe(16);
    expect(minPrefillChunkTokens(settings({ P: 16, groups: [F(16), R(8, 4)] }))).toBe(24);
    expect(minPrefillChunkTokens(settings({ P: 4, groups: [F(4)] }))).toBe(0);
    expect(minPrefillChunkTokens(settings({ P: 4, groups: [F(4), M(4)] }))).toBe(4);
  });
});
