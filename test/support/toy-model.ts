/** A model on the CPU library, driven by hand-made plans: everything of an engine but its scheduler. */
import type { Device } from "../../ffi/device";
import { kernelCompilation } from "../../src/engine/kernel-compilation";
import type { LogprobRows, SamplingOptions } from "../../src/engine/protocol";
import { ModelExecutor, type StepResult } from "../../src/executor/model-executor";
import type { RequestSampling } from "../../src/executor/request-sampling";
import { StepInputs } from "../../src/executor/step-inputs";
import { ActivationBuffers } from "../../src/layers/tensor";
import { CacheGroupRouter } from "../../src/mapping/cache-group-router";
import { CacheArena } from "../../src/memory/cache-arena";
import type { Model } from "../../src/models/model";
import { bind } from "../../src/recipes/bind";
import { cacheGroupConfigs } from "../../src/recipes/bridge";
import { AttentionKernels } from "../../src/runtime-kernels/attention-kernels";
import type { CacheGroupConfig } from "../../src/scheduler/config";
import type { ExecutionPlan } from "../../src/scheduler/plan";
import type { TensorSource } from "../../src/weights/tensor-source";
import { WeightLoader } from "../../src/weights/weight-loader";
import { openCpuDevice } from "./cpu-device";
import { noRuntimeKernels } from "./runtime-kernels";

export interface ToyModelOptions {
  readonly prefixGranularity?: number;
  readonly kernelPageSize?: number;
  readonly numLcmBlocks?: number;
  readonly numThreads?: number;
  readonly maxLogitRows?: number;
}

export const greedy: SamplingOptions = {
  temperature: 0,
  topP: 1,
  topK: 0,
  minP: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
};

/** Greedy, with the log-probabilities of the whole vocabulary everywhere. */
export function wholeVocabulary(promptLength: number): RequestSampling {
  return {
    options: greedy,
    seedLow: 1,
    seedHigh: 2,
    choice: 0,
    promptLength,
    suppressedIds: [],
    minTokens: 0,
    logprobs: -1,
    promptLogprobs: -1,
  };
}

export class ToyModel implements Disposable {
  readonly device: Device;
  readonly groups: readonly CacheGroupConfig[];
  readonly numLcmBlocks: number;
  readonly vocabSize: number;
  /** How each request samples, by its handle. */
  readonly sampling = new Map<number, RequestSampling>();
  readonly #executor: ModelExecutor;

  constructor(model: Model, source: TensorSource, options: ToyModelOptions = {}) {
    const { prefixGranularity = 64, kernelPageSize, numLcmBlocks = 40, numThreads = 1 } = options;
    const device = openCpuDevice({ numThreads });
    const bounds = { maxRows: 1024, maxSeqs: 8, maxSeqLen: 1024, maxLogitRows: options.maxLogitRows ?? 32 };
    const cacheOptions = { prefixGranularity, kvDtype: "float32" } as const;
    const declared = model.cacheGroups(cacheOptions);
    const layout = model.cacheLayout(declared, cacheOptions);
    const memoryPlan = bind(layout, numLcmBlocks);
    this.device = device;
    this.groups = cacheGroupConfigs(
      declared.map(({ spec }) => spec),
      memoryPlan,
    );
    this.numLcmBlocks = numLcmBlocks;
    this.vocabSize = model.vocabSize;
    model.checkWeights(source);
    const inputs = new StepInputs(device, bounds);
    const router = new CacheGroupRouter(device, layout, {
      groups: this.groups,
      maxBatchSize: bounds.maxSeqs,
      maxRows: bounds.maxRows,
      maxTokensPerRequest: bounds.maxSeqLen,
      kernelPageSize,
    });
    const built = model.build({
      device,
      loader: new WeightLoader(device, source, "float32"),
      buffers: new ActivationBuffers(device, bounds.maxRows, "float32"),
      operands: inputs.operands,
      bounds,
      kvDtype: "float32",
      attentionKernels: new AttentionKernels(
        device,
        (architecture) => kernelCompilation(noRuntimeKernels, architecture),
        () => 0,
      ),
      layerCache: (layer, mask) => router.layerView(layer, mask),
    });
    const arena = new CacheArena(device, memoryPlan);
    router.attachArena(arena);
    built.bindCache(arena);
    this.#executor = new ModelExecutor({
      device,
      model: built,
      router,
      inputs,
      bounds,
      vocabSize: model.vocabSize,
      lookup: (request) => this.sampling.get(request),
      maxPlansOut: 1,
      useGraphs: false,
    });
  }

  /** Carries out a plan and copies its results, which the next plan overwrites. */
  run(plan: ExecutionPlan): StepResult {
    this.#executor.submit(plan);
    const { planId, tokenCounts, tokens, logprobs, promptLogprobs } = this.#executor.collect();
    return {
      planId,
      tokenCounts: tokenCounts.slice(),
      tokens: tokens.slice(),
      logprobs: new Map(logprobs),
      promptLogprobs: new Map(promptLogprobs),
    };
  }

  [Symbol.dispose](): void {
    for (const address of [...this.device.allocations.keys()]) this.device.free(address);
    this.device.close();
  }
}

/** Rows of whole-vocabulary log-probabilities, one array a position. */
export function rowsOf(logprobs: LogprobRows | undefined): Float32Array[] {
  if (logprobs === undefined) return [];
  return Array.from({ length: logprobs.numRows }, (_, row) =>
    logprobs.values.slice(row * logprobs.count, (row + 1) * logprobs.count),
  );
}
