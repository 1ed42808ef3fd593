/**
 * The engine: commands in, one message a step out. Owns scheduler and executor; a plain class without
 * threads, so that a Worker, a test or a command line drive it the same way.
 */
import { GranaryError } from "../assert";
import type { Executor, StepResult } from "../executor/model-executor";
import { integrityCheckBlocks } from "../limits";
import type { SchedulerEvent } from "../scheduler/events";
import type { ExecutionPlan } from "../scheduler/plan";
import type { IntegrityCheck, Scheduler } from "../scheduler/scheduler";
import type { ChoiceTable } from "./choice-table";
import { GaugeCounter } from "./gauge-counter";
import type { EngineCommand, EngineLimits, EngineMessage, TokenChunk } from "./protocol";
import { StepCollector } from "./step-collector";
import { StepOutput } from "./step-output";

/** Monotonic milliseconds. */
export type Clock = () => number;

export interface EngineParts {
  readonly scheduler: Scheduler;
  readonly executor: Executor;
  /** The requests that live; the executor looks them up too. */
  readonly choices: ChoiceTable;
  /** Plans that may be submitted before the last one's result is read: 0 or 1, as the scheduler was told. */
  readonly overlapDepth: number;
  readonly limits: EngineLimits;
  /** Lines for the user about what was built. */
  readonly report: readonly string[];
  readonly clock: Clock;
  /** Frees the device memory behind it all. */
  release?(): void;
  post(message: EngineMessage): void;
}

export class Engine {
  readonly limits: EngineLimits;
  readonly report: readonly string[];
  readonly #parts: EngineParts;
  readonly #executor: Executor;
  readonly #choices: ChoiceTable;
  readonly #gauges: GaugeCounter;
  /** Everything that happened since the last plan, in order. */
  #events: SchedulerEvent[] = [];
  /** Chunks that are more than integers, not yet sent. */
  #chunks: TokenChunk[] = [];
  readonly #output: StepOutput;
  /** Submitted and not collected, oldest first. */
  readonly #plansOut: ExecutionPlan[] = [];
  readonly #collector = new StepCollector();
  #isChecked = true;
  #check: IntegrityCheck | undefined;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.limits = parts.limits;
    this.report = parts.report;
    this.#choices = parts.choices;
    this.#executor = parts.executor;
    this.#output = new StepOutput(parts.choices);
    this.#gauges = new GaugeCounter(parts.scheduler, parts.clock);
  }

  /** True while a step could change something. */
  get hasWork(): boolean {
    return (
      this.#events.length > 0 || this.#chunks.length > 0 || this.#parts.scheduler.hasUnfinishedRequests()
    );
  }

  /** Everything a reader of a failure wants to see, as JSON; changes nothing. */
  dumpState(): string {
    const choices = this.#choices.all().map(({ request, index, handle, numGenerated }) => ({
      request: request.id,
      choice: index,
      handle,
      promptTokens: request.tokens.length,
      numGenerated,
      stop: request.stop,
    }));
    const plansOut = this.#plansOut.map(({ planId, forward }) => ({ planId, rows: forward.rows.length }));
    const scheduler = this.#parts.scheduler.gauges();
    return JSON.stringify({ limits: this.limits, scheduler, plansOut, choices }, undefined, 1);
  }

  /** Gives back what the engine took; it must be idle and is not used again. */
  close(): void {
    this.#parts.release?.();
  }

  /** Takes a command in; its effect shows in the next step. */
  handle(command: EngineCommand): void {
    switch (command.kind) {
      case "submit":
        for (const choice of this.#choices.add(command.request)) this.#submit(choice);
        break;
      case "finish":
        this.#finishAt(command.id, command.choice, command.keptTokens);
        break;
      case "abort":
        this.#abort(command.id);
        break;
      case "flush":
        this.#parts.post({ kind: "flushed", id: command.id, cleared: this.#parts.scheduler.clearCache() });
        break;
      default:
        break;
    }
  }

  /** True when the books were walked since the last step. */
  get isChecked(): boolean {
    return this.#isChecked;
  }

  /** Looks at a slice of the books; true when the walk is complete. A leak throws. */
  checkSlice(): boolean {
    this.#check ??= this.#parts.scheduler.startIntegrityCheck();
    this.#isChecked = this.#check.step(integrityCheckBlocks);
    if (this.#isChecked) this.#check = undefined;
    return this.#isChecked;
  }

  /**
   * One round: feed events, plan, submit, and take in the oldest result that is due. With overlap the next
   * plan is submitted before the last one's tokens are read.
   */
  step(): void {
    const { scheduler, overlapDepth } = this.#parts;
    this.#isChecked = false;
    const events = this.#events;
    this.#events = [];
    scheduler.advance(events);
    const plan = scheduler.nextExecutionPlan();
    this.#gauges.countStep(plan);
    if (!plan.isEmpty) this.#executor.submit(plan);
    this.#collector.planSubmitted(plan.forward.rows.length);
    if (plan.forward.rows.length > 0) this.#plansOut.push(plan);
    const isDue = this.#plansOut.length > overlapDepth || plan.forward.rows.length === 0;
    const oldest = isDue ? this.#plansOut.shift() : undefined;
    if (oldest !== undefined) this.#collect(oldest, this.#executor.collect());
    this.#post();
  }

  #post(): void {
    const gauges = this.#gauges.due(!this.hasWork);
    if (this.#output.packed.isEmpty && this.#chunks.length === 0 && gauges === undefined) return;
    const chunks = this.#chunks;
    this.#chunks = [];
    const packed = this.#output.packed.take();
    this.#parts.post({ kind: "step", packed, chunks, ...(gauges === undefined ? {} : { gauges }) });
  }

  #submit(choice: ReturnType<ChoiceTable["add"]>[number]): void {
    const { request } = choice;
    const { maxModelLen } = this.limits;
    const numTokens = request.tokens.length + request.stop.maxTokens;
    try {
      // The cache may hold longer requests than the tables of the device were made for.
      if (numTokens > maxModelLen) {
        const context = `the context has ${maxModelLen}`;
        throw new GranaryError("exceedsCapacity", `the request asks for ${numTokens} tokens, ${context}`);
      }
      const [handle] = this.#parts.scheduler.submit([
        {
          requestId: `${request.id}/${choice.index}`,
          tokens: request.tokens,
          maxNewTokens: Math.max(1, request.stop.maxTokens),
          ...(request.namespaceRoot === undefined ? {} : { namespaceRoot: request.namespaceRoot }),
          ...(request.maxCachedPrefixTokens === undefined
            ? {}
            : { maxCachedPrefixTokens: request.maxCachedPrefixTokens }),
        },
      ]);
      this.#choices.bind(choice, handle as number);
    } catch (error) {
      // Only a request that asks too much ends alone; a promise of our own that broke stops the engine.
      if (!(error instanceof GranaryError)) throw error;
      this.#choices.remove(choice);
      this.#chunks.push({
        id: request.id,
        choice: choice.index,
        tokens: new Int32Array(),
        finish: "error",
        error: error.message,
      });
      for (const sibling of this.#choices.release(request.id)) this.#submit(sibling);
    }
  }

  /** A stop text matched on the main thread. What is gone already is ignored. */
  #finishAt(id: number, index: number, keptTokens: number): void {
    const choice = this.#choices.find(id, index);
    if (choice === undefined) return;
    this.#choices.remove(choice);
    const { scheduler } = this.#parts;
    const request = choice.handle;
    if (request >= 0) {
      this.#events.push(
        scheduler.canFinish(request) ? { kind: "finish", request, keptTokens } : { kind: "abort", request },
      );
    }
    for (const sibling of this.#choices.release(id)) this.#submit(sibling);
  }

  #abort(id: number): void {
    for (const choice of this.#choices.removeAll(id)) {
      if (choice.handle >= 0) this.#events.push({ kind: "abort", request: choice.handle });
    }
  }

  #collect(plan: ExecutionPlan, result: StepResult): void {
    const output = this.#output;
    this.#events.push({
      kind: "forwardResult",
      planId: result.planId,
      tokenCounts: result.tokenCounts,
      tokens: result.tokens,
    });
    output.collect(plan, result);
    this.#events.push(...output.events);
    this.#chunks.push(...output.chunks);
    this.#gauges.countTokens(output);
    for (const id of output.publishedRequests) {
      for (const sibling of this.#choices.release(id)) this.#submit(sibling);
    }
  }
}
