/**
 * Runs a scheduler the way a driver does and times it: the
 * plan, then the feed-back of one token a row and of finishes.
 */
import type { RequestSpec, SchedulerConfig } from "../../src/scheduler/config";
import type { SchedulerEvent } from "../../src/scheduler/events";
import type { ExecutionPlan } from "../../src/scheduler/plan";
import { Scheduler } from "../../src/scheduler/scheduler";
import { nowUs } from "./measure";

export interface BenchRequest {
  readonly spec: RequestSpec;
  /** Tokens it yields before it finishes. */
  readonly produce: number;
  readonly tokenAt: (position: number) => number;
}

interface Running {
  readonly request: BenchRequest;
  produced: number;
}

export interface Round {
  readonly us: number;
  readonly planUs: number;
  readonly numPrefills: number;
  readonly numDecodes: number;
  readonly numFinished: number;
  readonly plan: ExecutionPlan;
}

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
  readonly #running = new Map<number, Running>();
  readonly #timerUs: number;
  /**
   * Filled anew each round, as a driver would: garbage of the bench would be collected on the scheduler's
   * time.
   */
  readonly #tokenCounts = new Int32Array(256);
  readonly #tokens = new Int32Array(256);
  readonly #events: SchedulerEvent[] = [];
  /** Time of all submissions and rounds. */
  totalUs = 0;
  hitTokens = 0;

  constructor(config: SchedulerConfig, timerUs: number) {
    this.scheduler = new Scheduler(config);
    this.#timerUs = timerUs;
  }

  get numRunning(): number {
    return this.#running.size;
  }

  /** Submits together and returns the time it took. */
  submit(requests: readonly BenchRequest[]): number {
    const specs = requests.map((request) => request.spec);
    const start = nowUs();
    const handles = this.scheduler.submit(specs);
    const us = nowUs() - start - this.#timerUs;
    for (let i = 0; i < handles.length; i++)
      this.#running.set(handles[i], { request: requests[i], produced: 0 });
    this.totalUs += us;
    return us;
  }

  /** One plan and its results. */
  round(): Round {
    const start = nowUs();
    const plan = this.scheduler.nextExecutionPlan();
    const planUs = nowUs() - start - this.#timerUs;
    const { rows, numPrefills } = plan.forward;
    const events = this.#events;
    events.length = 0;
    const { planId } = plan;
    if (rows.length > 0) {
      events.push({ kind: "forwardResult", planId, tokenCounts: this.#tokenCounts, tokens: this.#tokens });
    }
    let numTokens = 0;
    let numFinished = 0;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i];
      if (row.isFirstChunk) this.hitTokens += row.deviceHitTokens;
      this.#tokenCounts[i] = 0;
      if (row.isPrefill && !row.completesPrompt) continue;
      const running = this.#running.get(row.request) as Running;
      this.#tokenCounts[i] = 1;
      const position = running.request.spec.tokens.length + running.produced;
      this.#tokens[numTokens++] = running.request.tokenAt(position);
      if (++running.produced < running.request.produce) continue;
      this.#running.delete(row.request);
      events.push({ kind: "finish", request: row.request });
      numFinished++;
    }
    const numDecodes = rows.length - numPrefills;
    const back = nowUs();
    this.scheduler.advance(events);
    const us = planUs + (nowUs() - back - this.#timerUs);
    this.totalUs += us;
    return { us, planUs, numPrefills, numDecodes, numFinished, plan };
  }

  /** Rounds until everything has finished; `each` sees every round. */
  drain(each: (round: Round) => void = () => {}): void {
    while (this.#running.size > 0) each(this.round());
  }

  /** Aborts one request without timing it and builds the empty plan that forgets it. */
  abort(handle: number): void {
    this.scheduler.advance([{ kind: "abort", request: handle }]);
    this.#running.delete(handle);
    this.scheduler.nextExecutionPlan();
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
