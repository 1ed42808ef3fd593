/**
 * Carries out execution plans on one device: tables, zeroing, forward, logits,
 * sampling. Decides nothing; what to run and for whom stands in the plan. A
 * plan is submitted without waiting, its result is collected later, in order.
 */
import type { Address, Device, Op } from "../../ffi/device";
import { assert } from "../assert";
import type { StepBounds, StepShape } from "../layers/build-context";
import { maxTopLogprobs } from "../limits";
import type { CacheGroupRouter } from "../mapping/cache-group-router";
import type { BuiltModel } from "../models/model";
import type { ExecutionPlan } from "../scheduler/plan";
import { DecodeGraphs } from "./decode-graphs";
import { LogprobReader } from "./logprob-reader";
import type { LogprobRows } from "./logprob-rows";
import { PromptLogprobs } from "./prompt-logprobs";
import type { SamplingLookup } from "./request-sampling";
import { Sampler } from "./sampler";
import { SamplingState } from "./sampling-state";
import type { StepInputs } from "./step-inputs";

/**
 * What a plan's forward batch yielded, by row; valid until
 * as many further plans were submitted as may be out.
 */
export interface StepResult {
  readonly planId: number;
  readonly tokenCounts: Int32Array;
  /** Tokens of the rows with a count, one after another; -1 where the logits were not numbers. */
  readonly tokens: Int32Array;
  /** Of rows that asked, by row index. */
  readonly logprobs: ReadonlyMap<number, LogprobRows>;
  readonly promptLogprobs: ReadonlyMap<number, LogprobRows>;
}

export interface Executor {
  /** Enqueues all that a plan asks for; one without forward rows has no result. */
  submit(plan: ExecutionPlan): void;
  /** Result of the oldest plan that is out; waits for the device. */
  collect(): StepResult;
}

/** Told about the edges of each step with forward rows, in stream order; for measuring. */
export interface StepProbe {
  stepBegins(): void;
  stepEnds(): void;
}

export interface ExecutorParts {
  readonly device: Device;
  readonly model: BuiltModel;
  readonly router: CacheGroupRouter;
  readonly inputs: StepInputs;
  readonly bounds: StepBounds;
  readonly vocabSize: number;
  readonly lookup: SamplingLookup;
  /** Plans that may be submitted before the first is collected. */
  readonly maxPlansOut: number;
  readonly useGraphs: boolean;
  readonly probe?: StepProbe | undefined;
}

/** Where one plan's outcome lands. */
class Landing {
  readonly logprobs = new Map<number, LogprobRows>();
  readonly promptLogprobs = new Map<number, LogprobRows>();
  readonly tokenCounts: Int32Array;
  readonly tokens: Int32Array;
  readonly tokensAddress: Address;
  readonly event: Address;
  planId = 0;
  numRows = 0;
  numTokens = 0;

  constructor(device: Device, maxSeqs: number) {
    const pinned = device.allocatePinned(maxSeqs * 4, "sampled tokens");
    this.tokensAddress = pinned.address;
    this.tokens = new Int32Array(pinned.memory);
    this.tokenCounts = new Int32Array(maxSeqs);
    this.event = device.createEvent();
  }

  close(device: Device): void {
    device.destroyEvent(this.event);
    device.freePinned(this.tokensAddress);
  }

  begin(plan: ExecutionPlan): void {
    this.planId = plan.planId;
    this.numRows = plan.forward.rows.length;
    this.numTokens = 0;
    this.tokenCounts.fill(0, 0, this.numRows);
    this.logprobs.clear();
    this.promptLogprobs.clear();
  }
}

export class ModelExecutor implements Executor {
  readonly #parts: ExecutorParts;
  readonly #state: SamplingState;
  readonly #sampler: Sampler;
  readonly #promptLogprobs: PromptLogprobs;
  readonly #graphs: DecodeGraphs | undefined;
  readonly #resolve: Op<"resolveTokens">;
  readonly #landings: readonly Landing[];
  #numSubmitted = 0;
  #numCollected = 0;

  constructor(parts: ExecutorParts) {
    const { device, model, inputs, bounds, vocabSize, lookup } = parts;
    this.#parts = parts;
    this.#state = new SamplingState(device, bounds.maxSeqs, vocabSize, bounds.maxSeqLen);
    const maxRows = bounds.maxLogitRows;
    const reader = new LogprobReader(device, model.logits, maxRows, Math.min(maxTopLogprobs, vocabSize));
    this.#promptLogprobs = new PromptLogprobs(device, model, reader, lookup, maxRows);
    this.#sampler = new Sampler({
      device,
      logits: model.logits,
      state: this.#state,
      reader,
      inputs,
      lookup,
      maxRows,
    });
    this.#graphs = parts.useGraphs ? new DecodeGraphs(device, bounds) : undefined;
    this.#landings = Array.from({ length: parts.maxPlansOut }, () => new Landing(device, bounds.maxSeqs));
    this.#resolve = device.op("resolveTokens", {
      ids: inputs.operands.tokenIds,
      lastTokens: this.#state.lastTokens,
      numSlots: this.#state.numSlots,
    });
  }

  /** Plans submitted and not collected. */
  get numPlansOut(): number {
    return this.#numSubmitted - this.#numCollected;
  }

  submit(plan: ExecutionPlan): void {
    const { device, router, inputs, lookup, probe } = this.#parts;
    const { forward } = plan;
    if (forward.rows.length > 0) probe?.stepBegins();
    const isDecode = forward.numPrefills === 0;
    const padded = isDecode && this.#graphs ? this.#graphs.paddedSeqs(forward.rows.length) : 0;
    router.applyPlan(plan, padded);
    if (forward.rows.length === 0) return;
    assert(this.numPlansOut < this.#landings.length, "more plans were submitted than may be out");
    const landing = this.#landings[this.#numSubmitted++ % this.#landings.length] as Landing;
    landing.begin(plan);
    for (const row of forward.rows) {
      const sampling = row.isFirstChunk ? lookup(row.request) : undefined;
      if (sampling !== undefined) this.#state.admit(row, sampling);
    }
    this.#forward(inputs.upload(forward, padded), padded);
    this.#promptLogprobs.read(forward, landing.promptLogprobs);
    if (!isDecode) this.#computeLogits(inputs.sampled.length);
    this.#sampler.enqueue(landing.tokensAddress, landing.logprobs);
    for (const { index } of inputs.sampled) landing.tokenCounts[index] = 1;
    landing.numTokens = inputs.sampled.length;
    device.recordEvent(landing.event);
    probe?.stepEnds();
  }

  collect(): StepResult {
    assert(this.numPlansOut > 0, "no plan is out");
    const landing = this.#landings[this.#numCollected++ % this.#landings.length] as Landing;
    this.#parts.device.waitEvent(landing.event);
    return {
      planId: landing.planId,
      tokenCounts: landing.tokenCounts.subarray(0, landing.numRows),
      tokens: landing.tokens.subarray(0, landing.numTokens),
      logprobs: landing.logprobs,
      promptLogprobs: landing.promptLogprobs,
    };
  }

  /** Gives back graphs, events and pinned memory; device memory is its owner's. */
  close(): void {
    this.#graphs?.close();
    for (const landing of this.#landings) landing.close(this.#parts.device);
  }

  /** A step of decode rows alone runs up to its logits, from a recorded graph where there are graphs. */
  #forward(shape: StepShape, padded: number): void {
    if (padded > 0) this.#graphs?.launch(shape, (bucket) => this.#enqueueDecode(bucket));
    else if (shape.prefillSeqs === 0) this.#enqueueDecode(shape);
    else this.#enqueueForward(shape);
  }

  #enqueueForward(shape: StepShape): void {
    this.#resolve.set("rows", shape.rows).launch();
    this.#parts.model.forward(shape);
  }

  #enqueueDecode(shape: StepShape): void {
    this.#enqueueForward(shape);
    this.#computeLogits(shape.decodeSeqs);
  }

  #computeLogits(rows: number): void {
    if (rows > 0) this.#parts.model.computeLogits(this.#parts.inputs.sampleRows, rows);
  }
}
