/** The running account of one scheduling round: what was built, what is left, and who could not be served. */
import type { PlanBuffer } from "./plan-ring";
import type { Request } from "./request";
import type { SchedulerSettings } from "./settings";

export class Round {
  readonly #settings: SchedulerSettings;
  plan: PlanBuffer;
  /** Tokens that the step may still feed. */
  budget = 0;
  /** First request, in phase order, whose admission failed for capacity. */
  blocker: Request | undefined;

  constructor(settings: SchedulerSettings, plan: PlanBuffer) {
    this.#settings = settings;
    this.plan = plan;
  }

  start(plan: PlanBuffer): void {
    this.plan = plan;
    this.budget = this.#settings.maxScheduledTokens;
    this.blocker = undefined;
  }

  get isFull(): boolean {
    return this.budget <= 0 || this.plan.forward.size >= this.#settings.maxBatchSize;
  }

  /** A prompt got further in this round, here or at a peer. */
  get hasPrefillProgress(): boolean {
    return this.plan.forward.numPrefillRows > 0 || this.plan.remotePrefill.size > 0;
  }

  get hasDecodes(): boolean {
    return this.plan.forward.numDecodeRows > 0;
  }

  blockedBy(request: Request): void {
    this.blocker ??= request;
  }

  /** Takes the last prefill row's tokens off the budget. */
  chargePrefill(request: Request, replay: number): void {
    this.budget -= request.windowEnd - request.windowBegin + replay;
  }
}
