/** Builds an engine from its options: checks everything that can be checked first, then takes memory in a fixed order. */
import { join } from "node:path";
import type { Dtype } from "../../ffi/device";
import { GranaryError } from "../assert";
import { ModelExecutor } from "../executor/model-executor";
import { StepInputs } from "../executor/step-inputs";
import type { StepBounds } from "../layers/build-context";
import { ActivationBuffers } from "../layers/tensor";
import { maxDefaultBatchedTokens, minLogitRows } from "../limits";
import { CacheGroupRouter } from "../mapping/cache-group-router";
import { CacheArena } from "../memory/cache-arena";
import type { Model } from "../models/model";
import { createModel, readConfigFile } from "../models/registry";
import { bind } from "../recipes/bind";
import { cacheGroupConfigs } from "../recipes/bridge";
import type { CacheGroupConfig } from "../scheduler/config";
import { Scheduler } from "../scheduler/scheduler";
import { openCheckpoint } from "../weights/checkpoint";
import { openSynthetic } from "../weights/synthetic";
import type { TensorSource } from "../weights/tensor-source";
import { WeightLoader } from "../weights/weight-loader";
import { Engine, type EngineParts } from "./engine";
import type { EngineOptions } from "./engine-options";
import { type OpenedDevice, openDevice } from "./open-device";
import { sizePool } from "./size-pool";

export type ProgressListener = (stage: string, fraction: number) => void;

function openWeights(options: EngineOptions): TensorSource {
  return options.loadFormat === "dummy"
    ? openSynthetic(options.modelDirectory, options.seed)
    : openCheckpoint(options.modelDirectory);
}

function boundsOf(options: EngineOptions, model: Model, kind: "cpu" | "cuda"): StepBounds {
  const maxSeqLen = options.maxModelLen ?? model.maxPositions;
  if (maxSeqLen > model.maxPositions) {
    throw new GranaryError(
      "invalid_option",
      `--max-model-len ${maxSeqLen} exceeds the ${model.maxPositions} positions the model was made for`,
    );
  }
  const maxRows = options.maxNumBatchedTokens ?? maxDefaultBatchedTokens[kind];
  return {
    maxRows,
    maxSeqs: options.maxNumSeqs,
    maxSeqLen,
    maxLogitRows: Math.max(options.maxNumSeqs, minLogitRows),
  };
}

/** What an engine is given beside its options. */
export interface EngineEnvironment extends Pick<EngineParts, "post" | "clock" | "randomUint32"> {
  /** Instead of opening a device of its own. */
  readonly openDevice?: (options: EngineOptions) => OpenedDevice;
}

/** Loads, builds and returns an idle engine. Everything that a user can have got wrong is thrown before memory is taken. */
export function loadEngine(
  options: EngineOptions,
  environment: EngineEnvironment,
  onProgress: ProgressListener = () => {},
): Engine {
  const model = createModel(
    readConfigFile(options.modelDirectory),
    join(options.modelDirectory, "config.json"),
  );
  using source = new DisposableStack();
  const weights = source.use(openWeights(options));
  model.checkWeights(weights);

  const { device, remark: deviceRemark } = (environment.openDevice ?? openDevice)(options);
  const dtype = options.dtype === "auto" ? (device.kind === "cpu" ? "float32" : "bfloat16") : options.dtype;
  const kvDtype = options.kvCacheDtype === "auto" ? dtype : options.kvCacheDtype;
  const activationDtype: Dtype = device.kind === "cpu" ? "float32" : dtype;
  // Nothing runs beside the host on the CPU, so a plan made ahead would only be made blind.
  const overlapDepth = (options.enableOverlap ?? device.kind === "cuda") ? 1 : 0;
  const bounds = boundsOf(options, model, device.kind);
  const cacheOptions = { prefixGranularity: options.prefixGranularity, kvDtype };
  const groups = model.cacheGroups(cacheOptions);
  const layout = model.cacheLayout(groups, cacheOptions);
  const specs = groups.map(({ spec }) => spec);

  const inputs = new StepInputs(device, bounds);
  const buffers = new ActivationBuffers(device, bounds.maxRows, activationDtype);
  const router = new CacheGroupRouter(device, layout, {
    // Spans and windows do not depend on the capacity that is bound below.
    groups: cacheGroupConfigs(specs, bind(layout, 1)),
    maxBatchSize: bounds.maxSeqs,
    maxRows: bounds.maxRows,
    maxTokensPerRequest: bounds.maxSeqLen,
    kernelPageSize: options.kernelPageSize,
  });
  const totalBytes = model.weightBytes("bfloat16");
  const loader = new WeightLoader(device, weights, dtype, (bytes, name) =>
    onProgress(name, Math.min(1, bytes / totalBytes)),
  );
  const built = model.build({
    device,
    loader,
    buffers,
    operands: inputs.operands,
    bounds,
    kvDtype,
    layerCache: (layer, mask) => router.layerView(layer, mask),
  });
  // Mapped weights are read for as long as the engine lives, so the source stays open.
  source.move();

  const pool = sizePool(device, layout, options);
  const plan = bind(layout, pool.numLcmBlocks);
  const arena = new CacheArena(device, plan);
  router.attachArena(arena);
  built.bindCache(arena);
  const scheduler = createScheduler(
    options,
    bounds,
    overlapDepth,
    plan.numLcmBlocks,
    cacheGroupConfigs(specs, plan),
  );
  const maxModelLen = Math.min(bounds.maxSeqLen, scheduler.maxSingleRequestTokens);
  if (options.maxModelLen !== undefined && maxModelLen < options.maxModelLen) {
    throw new GranaryError(
      "invalid_option",
      `--max-model-len ${options.maxModelLen} does not fit: the cache holds one request of ${maxModelLen} tokens`,
    );
  }
  return new Engine({
    ...environment,
    scheduler,
    createExecutor: (lookup) =>
      new ModelExecutor({
        device,
        model: built,
        router,
        inputs,
        bounds,
        vocabSize: model.vocabSize,
        lookup,
        maxPlansOut: overlapDepth + 1,
        useGraphs: device.kind === "cuda" && options.enableGraphs,
      }),
    overlapDepth,
    endTokens: options.endTokens,
    limits: {
      vocabSize: model.vocabSize,
      maxModelLen,
      prefixGranularity: options.prefixGranularity,
      numLcmBlocks: plan.numLcmBlocks,
      maxNumSeqs: bounds.maxSeqs,
    },
    report: [
      `device: ${deviceRemark}`,
      `weights: ${weights.description}, ${(model.numParameters / 1e6).toFixed(1)} M parameters`,
      `compute ${dtype}, cache ${kvDtype}: ${pool.remark}`,
      `context: ${maxModelLen} of the model's ${model.maxPositions} tokens`,
      ...model.remarks,
    ],
  });
}

function createScheduler(
  options: EngineOptions,
  bounds: StepBounds,
  overlapScheduleDepth: number,
  numDeviceLcmBlocks: number,
  cacheGroups: readonly CacheGroupConfig[],
): Scheduler {
  return new Scheduler({
    prefixGranularity: options.prefixGranularity,
    numDeviceLcmBlocks,
    cacheGroups,
    maxScheduledTokens: bounds.maxRows,
    maxBatchSize: bounds.maxSeqs,
    overlapScheduleDepth,
    disablePrefixCache: !options.enablePrefixCaching,
    enableMixedPrefillDecode: options.enableMixedBatch,
  });
}
