/** W2b for minutes: whether steps stay short when nothing is ever restarted. */
import { activeSet, chatRequest, w2Config } from "./chat";
import { LatencyHistogram, nowUs, spinControl } from "./measure";
import { Rig, type Round } from "./rig";

export interface LongRun {
  readonly steps: number;
  readonly p999: number;
  readonly p9999: number;
  readonly max: number;
  readonly over1ms: number;
  readonly residentMiB: readonly number[];
  readonly spin: ReturnType<typeof spinControl>;
}

/** `settle` is called once, when the first lap is over. */
export function runLong(minutes: number, timerUs: number, settle: () => void): LongRun {
  const rig = new Rig(w2Config(), timerUs);
  const batches = activeSet().map((turns) => turns.map(chatRequest));
  const steps = new LatencyHistogram();
  const residentMiB: number[] = [];
  /** Of a submission, which belongs to the step that it is followed by. */
  let submitUs = 0;
  const noteRound = ({ us }: Round) => {
    steps.add(us + submitUs);
    submitUs = 0;
  };
  const start = nowUs();
  let nextMinute = start + 60e6;
  for (let lap = 0; nowUs() - start < minutes * 60e6; lap++) {
    if (lap === 1) settle();
    for (const batch of batches) {
      submitUs = rig.submit(batch);
      rig.drain(noteRound);
      if (nowUs() < nextMinute) continue;
      nextMinute += 60e6;
      residentMiB.push(Math.round(process.memoryUsage.rss() / 1024 / 1024));
      if (nowUs() - start >= minutes * 60e6) break;
    }
  }
  return {
    steps: steps.count,
    p999: steps.quantile(0.999),
    p9999: steps.quantile(0.9999),
    max: steps.maxUs,
    over1ms: steps.countAbove(1000),
    residentMiB,
    spin: spinControl(20_000),
  };
}
