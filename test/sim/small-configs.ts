/** The tiny deployments whose histories are explored whole. */
import type { SchedulerConfig } from "../../src/scheduler/config";
import { configOf, F, M, W } from "../scheduler/driver";

const tiny = { P: 2, T: 4, B: 2 };

export const smallConfigs: readonly [name: string, config: SchedulerConfig][] = [
  ["full history, four parents", configOf({ ...tiny, pool: 4, groups: [F(2)] })],
  ["full history over Host", configOf({ ...tiny, pool: 4, host: 3, groups: [F(2)] })],
  ["packed history and a window", configOf({ ...tiny, pool: 4, groups: [F(2, 2), W(3, 2, 2)] })],
  ["history and state, overlapped", configOf({ ...tiny, pool: 4, depth: 1, groups: [F(2, 4), M(2, 2)] })],
  [
    "mixed steps over Host",
    configOf({ ...tiny, pool: 4, host: 2, enableMixedPrefillDecode: true, groups: [F(2, 2), W(3, 1, 4)] }),
  ],
];
