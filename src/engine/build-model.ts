/**
 * Puts a checked model on a device: weights, buffers, tables
 * and sampler; everything an engine has beside its cache.
 */
import type { Device } from "../../ffi/device";
import { ModelExecutor, type StepProbe } from "../executor/model-executor";
import { StepInputs } from "../executor/step-inputs";
import type { StepBounds } from "../layers/build-context";
import { ActivationBuffers } from "../layers/tensor";
import { CacheGroupRouter } from "../mapping/cache-group-router";
import type { BuiltModel, Model } from "../models/model";
import { bind } from "../recipes/bind";
import { cacheGroupConfigs } from "../recipes/bridge";
import type { CacheGroupSpec } from "../recipes/cache-spec";
import type { CacheLayout } from "../recipes/pack";
import type { AttentionKernels } from "../runtime-kernels/attention-kernels";
import type { TensorSource } from "../weights/tensor-source";
import { WeightLoader } from "../weights/weight-loader";
import type { ChoiceTable } from "./choice-table";
import type { EngineOptions } from "./engine-options";

export type ProgressListener = (stage: string, fraction: number) => void;

/** The choices of types and sizes that follow from options and device. */
export interface BuildPlan {
  readonly dtype: "float32" | "bfloat16";
  /** Of what flows between layers; the CPU's kernels keep that in float32 whatever the weights are. */
  readonly activationDtype: "float32" | "bfloat16";
  readonly kvDtype: "float32" | "bfloat16";
  readonly bounds: StepBounds;
  readonly overlapDepth: number;
  readonly specs: readonly CacheGroupSpec[];
  readonly layout: CacheLayout;
}

export interface ModelOnDevice {
  readonly built: BuiltModel;
  readonly router: CacheGroupRouter;
  readonly executor: ModelExecutor;
  /** Of weights that are read where their file is mapped, beside those that took memory. */
  readonly mappedWeightBytes: number;
}

export interface BuildModelInput {
  readonly device: Device;
  readonly model: Model;
  readonly weights: TensorSource;
  readonly plan: BuildPlan;
  readonly options: EngineOptions;
  readonly choices: ChoiceTable;
  readonly probe: StepProbe | undefined;
  readonly attentionKernels: AttentionKernels;
  readonly onProgress: ProgressListener;
}

/**
 * Throws when the weights cannot fit together: one by one they would be taken until the last does not, and a
 * CPU's memory is only found missing when it is written. What may stay mapped from its file needs no room.
 */
function checkWeightMemory({ device, model, plan, options }: BuildModelInput): void {
  if (device.kind === "cpu" && options.loadFormat !== "dummy") return;
  device.demandRoom(model.weightBytes(device.kind === "cpu" ? "bfloat16" : plan.dtype), "the weights");
}

function loadWeights(
  input: BuildModelInput,
  loader: WeightLoader,
  router: CacheGroupRouter,
  inputs: StepInputs,
): BuiltModel {
  const { device, model, plan } = input;
  return model.build({
    device,
    loader,
    buffers: new ActivationBuffers(device, plan.bounds.maxRows, plan.activationDtype),
    operands: inputs.operands,
    bounds: plan.bounds,
    kvDtype: plan.kvDtype,
    attentionKernels: input.attentionKernels,
    layerCache: (layer, mask) => router.layerView(layer, mask),
  });
}

export function buildModel(input: BuildModelInput): ModelOnDevice {
  const { device, model, weights, plan, options, choices, probe, onProgress } = input;
  checkWeightMemory(input);
  const { bounds, layout, specs, overlapDepth } = plan;
  const inputs = new StepInputs(device, bounds);
  const router = new CacheGroupRouter(device, layout, {
    // Spans and windows do not depend on the capacity, which is bound once all else has its memory.
    groups: cacheGroupConfigs(specs, bind(layout, 1)),
    maxBatchSize: bounds.maxSeqs,
    maxRows: bounds.maxRows,
    maxTokensPerRequest: bounds.maxSeqLen,
    kernelPageSize: options.kernelPageSize,
  });
  // Checkpoints come in two bytes a parameter nearly always; the fraction is for the eye.
  const totalBytes = model.weightBytes("bfloat16");
  const loader = new WeightLoader(device, weights, plan.dtype, (bytes, name) =>
    onProgress(name, Math.min(1, bytes / totalBytes)),
  );
  const built = loadWeights(input, loader, router, inputs);
  const executor = new ModelExecutor({
    device,
    model: built,
    router,
    inputs,
    bounds,
    vocabSize: model.vocabSize,
    lookup: (handle) => choices.byHandle(handle)?.sampling,
    maxPlansOut: overlapDepth + 1,
    useGraphs: device.kind === "cuda" && options.enableGraphs,
    probe,
  });
  return { built, router, executor, mappedWeightBytes: loader.mappedBytes };
}
