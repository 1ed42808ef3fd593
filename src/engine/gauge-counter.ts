/** Running totals of an engine and the rhythm in which they are sent along. */
import { gaugeIntervalMs } from "../limits";
import type { ExecutionPlan } from "../scheduler/plan";
import type { Scheduler } from "../scheduler/scheduler";
import type { EngineGauges } from "./protocol";
import type { StepOutput } from "./step-output";

export class GaugeCounter {
  readonly #scheduler: Pick<Scheduler, "gauges">;
  readonly #clock: () => number;
  #steps = 0;
  #promptTokens = 0;
  #cachedTokens = 0;
  #generationTokens = 0;
  #nanAborts = 0;
  #sentAtMs = Number.NEGATIVE_INFINITY;

  constructor(scheduler: Pick<Scheduler, "gauges">, clock: () => number) {
    this.#scheduler = scheduler;
    this.#clock = clock;
  }

  countStep(plan: ExecutionPlan): void {
    if (!plan.isEmpty) this.#steps++;
  }

  countTokens(output: StepOutput): void {
    this.#promptTokens += output.promptTokens;
    this.#cachedTokens += output.cachedTokens;
    this.#generationTokens += output.generationTokens;
    this.#nanAborts += output.nanAborts;
  }

  /** The gauges when their interval has passed, or always with `isLast`. */
  due(isLast: boolean): EngineGauges | undefined {
    const nowMs = this.#clock();
    if (!isLast && nowMs - this.#sentAtMs < gaugeIntervalMs) return undefined;
    this.#sentAtMs = nowMs;
    const scheduler = this.#scheduler.gauges();
    return {
      steps: this.#steps,
      waiting: scheduler.waiting,
      prefilling: scheduler.prefilling,
      decoding: scheduler.decoding,
      totalLcmBlocks: scheduler.totalLcmBlocks,
      availableLcmBlocks: scheduler.availableLcmBlocks,
      emptyLcmBlocks: scheduler.emptyLcmBlocks,
      activeLcmBlocks: scheduler.activeLcmBlocks,
      cachedBlocks: scheduler.cachedBlocks,
      retractions: scheduler.retractions,
      evictions: scheduler.evictions,
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      generationTokens: this.#generationTokens,
      nanAborts: this.#nanAborts,
    };
  }
}
