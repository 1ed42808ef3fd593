/**
 * Runs a scheduler the way a driver does and times it: the
 * plan, then the feed-back of one token a row, of finishes and of copies.
 */
import { StepCollector } from "../../src/engine/step-collector";
import type { RequestSpec, SchedulerConfig } from "../../src/scheduler/config";
import type { Finish, ForwardResult, SchedulerEvent } from "../../src/scheduler/events";
import { Scheduler } from "../../src/scheduler/scheduler";
import { nowUs } from "./measure";

export interface BenchRequest {
  readonly spec: RequestSpec;
  /** Tokens it yields before it finishes. */
  readonly produce: number;
  readonly tokenAt: (position: number) => number;
}

/** What the last round was; overwritten by the next one. */
export interface Round {
  readonly us: number;
  readonly planUs: number;
  readonly numPrefills: number;
  readonly numDecodes: number;
  readonly numFinished: number;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

const maxRows = 256;
/** Above the number of requests that any workload has alive; a power of two. */
const maxRunning = 16_384;

export const fullGroup = { groupId: "full", blockGranularity: 64 };

export function benchConfig(numBlocks: number, overrides: Partial<SchedulerConfig> = {}): SchedulerConfig {
  return {
    prefixGranularity: 64,
    numDeviceLcmBlocks: numBlocks,
    cacheGroups: [fullGroup],
    maxScheduledTokens: 8192,
    maxBatchSize: 256,
    ...overrides,
  };
}

export class Rig {
  readonly scheduler: Scheduler;
  /** What runs and how many tokens it yielded, by the low bits of the handle. */
  readonly #running = new Array<BenchRequest | undefined>(maxRunning).fill(undefined);
  readonly #produced = new Int32Array(maxRunning);
  #numRunning = 0;
  readonly #timerUs: number;
  /** Filled anew each round: garbage of the bench would be collected on the scheduler's time. */
  readonly #round = { us: 0, planUs: 0, numPrefills: 0, numDecodes: 0, numFinished: 0 };
  readonly #events: SchedulerEvent[] = [];
  readonly #results: Mutable<ForwardResult> = {
    kind: "forwardResult",
    planId: 0,
    tokenCounts: new Int32Array(maxRows),
    tokens: new Int32Array(maxRows),
  };
  readonly #finishes = Array.from(
    { length: maxRows },
    (): Mutable<Finish> => ({ kind: "finish", request: 0 }),
  );
  readonly #collector = new StepCollector();
  /** Time of all submissions and rounds. */
  totalUs = 0;
  hitTokens = 0;

  constructor(config: SchedulerConfig, timerUs: number) {
    this.scheduler = new Scheduler(config);
    this.#timerUs = timerUs;
  }

  get numRunning(): number {
    return this.#numRunning;
  }

  /** Submits together and returns the time it took. */
  submit(requests: readonly BenchRequest[]): number {
    const specs = requests.map((request) => request.spec);
    const start = nowUs();
    const handles = this.scheduler.submit(specs);
    const us = nowUs() - start - this.#timerUs;
    for (let i = 0; i < handles.length; i++) {
      const at = handles[i] & (maxRunning - 1);
      if (this.#running[at] !== undefined)
        throw new Error("more requests are alive than the rig has room for");
      this.#running[at] = requests[i];
      this.#produced[at] = 0;
    }
    this.#numRunning += handles.length;
    this.totalUs += us;
    return us;
  }

  /** One plan and its results. */
  round(): Round {
    const start = nowUs();
    const plan = this.scheduler.nextExecutionPlan();
    const planUs = nowUs() - start - this.#timerUs;
    const { rows, numPrefills } = plan.forward;
    // As the engine does when it has handed the plan to the device: no part of the scheduler's time.
    this.#collector.planSubmitted(rows.length);
    const events = this.#events;
    events.length = 0;
    const { tokenCounts, tokens } = this.#results;
    this.#results.planId = plan.planId;
    if (rows.length > 0) events.push(this.#results);
    let numTokens = 0;
    let numFinished = 0;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      if (row.isFirstChunk) this.hitTokens += row.deviceHitTokens;
      tokenCounts[i] = 0;
      if (row.isPrefill && !row.completesPrompt) continue;
      const at = row.request & (maxRunning - 1);
      const request = this.#running[at] as BenchRequest;
      tokenCounts[i] = 1;
      tokens[numTokens++] = request.tokenAt(request.spec.tokens.length + this.#produced[at]);
      if (++this.#produced[at] < request.produce) continue;
      this.#forget(at);
      const finish = this.#finishes[numFinished++];
      finish.request = row.request;
      events.push(finish);
    }
    // Copies are done when the step is: the device carries them out in front of it.
    for (const { opId } of plan.writeBacks) events.push({ kind: "writeBackDone", opId });
    for (const { opId } of plan.loadBacks) events.push({ kind: "loadBackDone", opId, success: true });
    const round = this.#round;
    const back = nowUs();
    this.scheduler.advance(events);
    round.us = planUs + (nowUs() - back - this.#timerUs);
    round.planUs = planUs;
    round.numPrefills = numPrefills;
    round.numDecodes = rows.length - numPrefills;
    round.numFinished = numFinished;
    this.totalUs += round.us;
    return round;
  }

  /** Rounds until everything has finished; `each` sees every round. */
  drain(each: (round: Round) => void = () => {}): void {
    while (this.#numRunning > 0) each(this.round());
  }

  /** Aborts one request without timing it and builds the empty plan that forgets it. */
  abort(handle: number): void {
    this.scheduler.advance([{ kind: "abort", request: handle }]);
    const at = handle & (maxRunning - 1);
    if (this.#running[at] !== undefined) this.#forget(at);
    this.scheduler.nextExecutionPlan();
  }

  #forget(at: number): void {
    this.#running[at] = undefined;
    this.#numRunning--;
  }
}

/** A request of so many tokens of a stream that yields `produce` more of it. */
export function streamRequest(
  requestId: string,
  tokens: Int32Array,
  produce: number,
  maxNewTokens = 0,
): BenchRequest {
  return { spec: { requestId, tokens, maxNewTokens }, produce, tokenAt: (position) => 1 + (position % 1000) };
}
