/**
 * Carries out execution plans on one device: tables, zeroing, forward, logits, sampling. Decides nothing; what to run and for
 * whom stands in the plan.
 */
import type { Address, Device, Op } from "../../ffi/device";
import type { LogprobRows } from "../engine/protocol";
import type { StepBounds } from "../layers/build-context";
import { maxLogitBiases, maxSuppressedIds, maxTopLogprobs } from "../limits";
import type { CacheGroupRouter } from "../mapping/cache-group-router";
import type { BuiltModel } from "../models/model";
import type { ExecutionPlan, ForwardRow } from "../scheduler/plan";
import { concatenateLogprobs, LogprobReader } from "./logprob-reader";
import type { SamplingLookup } from "./request-sampling";
import { SamplingState } from "./sampling-state";
import type { StepInputs } from "./step-inputs";

/** What a plan's forward batch yielded, by row. */
export interface StepResult {
  readonly planId: number;
  readonly tokenCounts: Int32Array;
  /** Tokens of the rows with a count, one after another; -1 where the logits were not numbers. */
  readonly tokens: Int32Array;
  /** Of rows that asked, by row index. */
  readonly logprobs: ReadonlyMap<number, LogprobRows>;
  readonly promptLogprobs: ReadonlyMap<number, LogprobRows>;
}

export interface ExecutorParts {
  readonly device: Device;
  readonly model: BuiltModel;
  readonly router: CacheGroupRouter;
  readonly inputs: StepInputs;
  readonly bounds: StepBounds;
  readonly vocabSize: number;
  readonly lookup: SamplingLookup;
}

export class ModelExecutor {
  readonly #parts: ExecutorParts;
  readonly #state: SamplingState;
  readonly #logprobs: LogprobReader;
  readonly #resolve: Op<"resolveTokens">;
  readonly #sample: Op<"sample">;
  readonly #sampledIds: Address;
  readonly #promptRows: Address;

  constructor(parts: ExecutorParts) {
    const { device, model, inputs, bounds, vocabSize } = parts;
    this.#parts = parts;
    this.#state = new SamplingState(device, bounds.maxSeqs, vocabSize, bounds.maxSeqLen);
    this.#logprobs = new LogprobReader(
      device,
      model.logits,
      bounds.maxLogitRows,
      Math.min(maxTopLogprobs, vocabSize),
    );
    this.#sampledIds = device.allocate(bounds.maxSeqs * 4, "sampled tokens");
    this.#promptRows = device.allocate(bounds.maxLogitRows * 4, "prompt rows");
    this.#resolve = device.op("resolveTokens", {
      ids: inputs.operands.tokenIds,
      lastTokens: this.#state.lastTokens,
      numSlots: this.#state.numSlots,
    });
    this.#sample = device.op("sample", {
      logits: model.logits.address,
      params: this.#state.params,
      counts: this.#state.counts,
      biasIds: this.#state.biasIds,
      biasValues: this.#state.biasValues,
      suppressedIds: this.#state.suppressedIds,
      lastTokens: this.#state.lastTokens,
      logitsStride: model.logits.stride,
      rows: bounds.maxLogitRows,
      vocab: vocabSize,
      numSlots: this.#state.numSlots,
      biasCapacity: maxLogitBiases,
      suppressedCapacity: maxSuppressedIds,
    });
    const scratchBytes = device.scratchBytes("sample", this.#sample.block);
    if (scratchBytes > 0) this.#sample.set("scratch", device.allocate(scratchBytes, "sampler scratch"));
  }

  /** Runs a plan to its end and brings the results back. */
  execute(plan: ExecutionPlan): StepResult {
    const { router, inputs, model } = this.#parts;
    const { forward } = plan;
    router.applyPlan(plan);
    for (const row of forward.rows) if (row.isFirstChunk) this.#admit(row);
    const promptLogprobs = new Map<number, LogprobRows>();
    const logprobs = new Map<number, LogprobRows>();
    const tokenCounts = new Int32Array(forward.rows.length);
    if (forward.rows.length === 0) {
      return { planId: plan.planId, tokenCounts, tokens: new Int32Array(), logprobs, promptLogprobs };
    }
    const shape = inputs.upload(forward);
    this.#resolve.set("rows", shape.rows).launch();
    model.forward(shape);
    this.#readPromptLogprobs(plan, promptLogprobs);
    const tokens = this.#sampleRows(logprobs);
    for (const { index } of inputs.sampled) tokenCounts[index] = 1;
    return { planId: plan.planId, tokenCounts, tokens, logprobs, promptLogprobs };
  }

  #admit(row: ForwardRow): void {
    const sampling = this.#parts.lookup(row.request);
    if (sampling !== undefined) this.#state.admit(row, sampling);
  }

  /** Logits, log-probabilities and tokens of the sampled rows, in slices of the logits buffer. */
  #sampleRows(logprobs: Map<number, LogprobRows>): Int32Array {
    const { device, model, inputs, bounds, lookup } = this.#parts;
    const { sampled } = inputs;
    const tokens = new Int32Array(sampled.length);
    for (let begin = 0; begin < sampled.length; begin += bounds.maxLogitRows) {
      const rows = Math.min(bounds.maxLogitRows, sampled.length - begin);
      const slice = sampled.slice(begin, begin + rows);
      const wanted = slice.map(({ row }) => lookup(row.request)?.logprobs);
      model.computeLogits(inputs.sampleRows + begin * 4, rows);
      if (wanted.some((count) => count !== undefined)) this.#logprobs.compute(rows);
      this.#sample
        .set("slots", inputs.sampleSlots + begin * 4)
        .set("positions", inputs.samplePositions + begin * 4)
        .set("out", this.#sampledIds)
        .set("rows", rows)
        .launch();
      const drawn = tokens.subarray(begin, begin + rows);
      device.download(drawn, this.#sampledIds);
      wanted.forEach((count, i) => {
        const { row, index } = slice[i] as (typeof slice)[number];
        if (count === undefined || (drawn[i] as number) < 0) return;
        const request = { firstRow: i, numRows: 1, begin: row.begin + row.size, count };
        logprobs.set(index, this.#logprobs.read(request, drawn.slice(i, i + 1)));
      });
    }
    return tokens;
  }

  /** A row at position p predicts the prompt's token at p + 1. */
  #readPromptLogprobs(plan: ExecutionPlan, out: Map<number, LogprobRows>): void {
    const { lookup, bounds } = this.#parts;
    let hiddenRow = 0;
    for (let index = 0; index < plan.forward.numPrefills; index++) {
      const row = plan.forward.rows[index] as ForwardRow;
      const sampling = lookup(row.request);
      const count = sampling?.promptLogprobs;
      const firstHidden = hiddenRow + row.replay;
      hiddenRow += row.inputLength;
      if (sampling === undefined || count === undefined) continue;
      const last = Math.min(row.begin + row.size, sampling.promptLength - 1);
      const parts: LogprobRows[] = [];
      for (let begin = row.begin + 1; begin <= last; begin += bounds.maxLogitRows) {
        const rows = Math.min(bounds.maxLogitRows, last + 1 - begin);
        parts.push(this.#promptSlice(row, firstHidden + begin - 1 - row.begin, begin, rows, count));
      }
      const joined = concatenateLogprobs(parts);
      if (joined !== undefined) out.set(index, joined);
    }
  }

  #promptSlice(row: ForwardRow, hiddenRow: number, begin: number, rows: number, count: number): LogprobRows {
    const { device, model } = this.#parts;
    device.upload(
      this.#promptRows,
      Int32Array.from({ length: rows }, (_, i) => hiddenRow + i),
    );
    model.computeLogits(this.#promptRows, rows);
    this.#logprobs.compute(rows);
    return this.#logprobs.read(
      { firstRow: 0, numRows: rows, begin, count },
      row.tokens.slice(begin, begin + rows),
    );
  }
}
