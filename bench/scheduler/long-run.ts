/** W2b for minutes: whether steps stay short when nothing is ever restarted. */
import { activeSet, type Turn, w2Config } from "./chat";
import { nowUs, spinControl, summarize } from "./measure";
import { type BenchRequest, Rig } from "./rig";
import { conversationToken, conversationTokens } from "./tokens";

export interface LongRun {
  readonly steps: number;
  readonly p999: number;
  readonly p9999: number;
  readonly max: number;
  readonly over1ms: number;
  readonly residentMiB: readonly number[];
  readonly spin: ReturnType<typeof spinControl>;
}

const maxSamples = 20_000_000;

export function runLong(minutes: number, timerUs: number): LongRun {
  const rig = new Rig(w2Config(), timerUs);
  const order = activeSet();
  const samples = new Float32Array(maxSamples);
  const residentMiB: number[] = [];
  let steps = 0;
  const start = nowUs();
  let nextMinute = start + 60e6;
  for (let lap = 0; nowUs() - start < minutes * 60e6; lap++) {
    for (const [turn] of order) {
      rig.submit([turnRequest(turn, lap)]);
      rig.drain((round) => {
        samples[steps++ % maxSamples] = round.us;
      });
      if (nowUs() < nextMinute) continue;
      nextMinute += 60e6;
      residentMiB.push(Math.round(process.memoryUsage.rss() / 1024 / 1024));
      if (nowUs() - start >= minutes * 60e6) break;
    }
  }
  const kept = samples.subarray(0, Math.min(steps, maxSamples));
  const { p999, p9999, max } = summarize(kept);
  const over1ms = kept.reduce((count, us) => count + Number(us > 1000), 0);
  return { steps, p999, p9999, max, over1ms, residentMiB, spin: spinControl(20_000) };
}

function turnRequest([conversation, turn]: Turn, lap: number): BenchRequest {
  return {
    spec: {
      requestId: `l${lap}.c${conversation}.t${turn}`,
      tokens: conversationTokens(conversation, 1280 + 320 * turn),
      maxNewTokens: 64,
    },
    produce: 64,
    tokenAt: (position) => conversationToken(conversation, position),
  };
}
