/**
 * Builds an engine from its options: checks everything that
 * can be checked first, then takes memory in a fixed order.
 */
import { join } from "node:path";
import type { Device } from "../../ffi/device";
import { demand, GranaryError } from "../assert";
import type { StepProbe } from "../executor/model-executor";
import type { StepBounds } from "../layers/build-context";
import { maxDefaultBatchedTokens, maxStopTokenIds, maxSuppressedIds, minLogitRows } from "../limits";
import { CacheArena } from "../memory/cache-arena";
import type { Model } from "../models/model";
import { createModel, readConfigFile } from "../models/registry";
import { bind } from "../recipes/bind";
import { cacheGroupConfigs } from "../recipes/bridge";
import { AttentionKernels } from "../runtime-kernels/attention-kernels";
import type { CacheGroupConfig } from "../scheduler/config";
import { Scheduler } from "../scheduler/scheduler";
import { openCheckpoint } from "../weights/checkpoint";
import { openSynthetic } from "../weights/synthetic";
import type { TensorSource } from "../weights/tensor-source";
import { type BuildPlan, buildModel, type ProgressListener } from "./build-model";
import { ChoiceTable } from "./choice-table";
import { Engine, type EngineParts } from "./engine";
import type { EngineOptions } from "./engine-options";
import { kernelCompilation } from "./kernel-compilation";
import { MemoryLedger } from "./memory-ledger";
import { type OpenedDevice, openDevice } from "./open-device";
import { sizePool } from "./size-pool";

/** What an engine is given beside its options. */
export interface EngineEnvironment extends Pick<EngineParts, "post" | "clock"> {
  readonly randomUint32: () => number;
  /** Instead of opening a device of its own. */
  readonly openDevice?: (options: EngineOptions) => OpenedDevice;
  readonly probe?: StepProbe;
}

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
  return {
    maxRows: options.maxNumBatchedTokens ?? maxDefaultBatchedTokens[kind],
    maxSeqs: options.maxNumSeqs,
    maxSeqLen,
    maxLogitRows: Math.max(options.maxNumSeqs, minLogitRows),
  };
}

/** A request's stop ids come on top, and both together must fit what a slot can hold back. */
function checkEndTokens(endTokens: readonly number[]): void {
  const most = maxSuppressedIds - maxStopTokenIds;
  demand(
    endTokens.length <= most,
    "invalid_config",
    `the model's files name ${endTokens.length} end tokens, more than ${most}`,
  );
}

function planBuild(options: EngineOptions, model: Model, device: Device): BuildPlan {
  const dtype = options.dtype === "auto" ? (device.kind === "cpu" ? "float32" : "bfloat16") : options.dtype;
  const kvDtype = options.kvCacheDtype === "auto" ? dtype : options.kvCacheDtype;
  const cacheOptions = { prefixGranularity: options.prefixGranularity, kvDtype };
  const groups = model.cacheGroups(cacheOptions);
  return {
    dtype,
    activationDtype: device.kind === "cpu" ? "float32" : dtype,
    kvDtype,
    bounds: boundsOf(options, model, device.kind),
    // Nothing runs beside the host on the CPU, so a plan made ahead would only be made blind.
    overlapDepth: (options.enableOverlap ?? device.kind === "cuda") ? 1 : 0,
    specs: groups.map(({ spec }) => spec),
    layout: model.cacheLayout(groups, cacheOptions),
  };
}

/** Weights are named where they are rounded to another type than is computed in. */
function computeText({ dtype, activationDtype }: BuildPlan): string {
  return dtype === activationDtype ? dtype : `${activationDtype}, weights ${dtype}`;
}

function createScheduler(
  options: EngineOptions,
  plan: BuildPlan,
  numDeviceLcmBlocks: number,
  cacheGroups: readonly CacheGroupConfig[],
): Scheduler {
  return new Scheduler({
    prefixGranularity: options.prefixGranularity,
    numDeviceLcmBlocks,
    cacheGroups,
    maxScheduledTokens: plan.bounds.maxRows,
    maxBatchSize: plan.bounds.maxSeqs,
    overlapScheduleDepth: plan.overlapDepth,
    disablePrefixCache: !options.enablePrefixCaching,
    enableMixedPrefillDecode: options.enableMixedBatch,
  });
}

/** Tokens of one request that both the model and the cache can hold. */
function maxModelLenOf(options: EngineOptions, plan: BuildPlan, scheduler: Scheduler): number {
  // A prompt alone takes as much as one with an answer of one token.
  const maxModelLen = Math.min(plan.bounds.maxSeqLen, scheduler.maxSingleRequestTokens - 1);
  if (options.maxModelLen !== undefined && maxModelLen < options.maxModelLen) {
    throw new GranaryError(
      "invalid_option",
      `--max-model-len ${options.maxModelLen} does not fit: ` +
        `the cache holds one request of ${maxModelLen} tokens`,
    );
  }
  return maxModelLen;
}

/**
 * Loads, builds and returns an idle engine. Everything that a
 * user can have got wrong is thrown before memory is taken.
 */
export function loadEngine(
  options: EngineOptions,
  environment: EngineEnvironment,
  onProgress: ProgressListener = () => {},
): Engine {
  checkEndTokens(options.endTokens);
  const model = createModel(
    readConfigFile(options.modelDirectory),
    join(options.modelDirectory, "config.json"),
  );
  // Mapped weights are read for as long as the engine lives; only a failure closes their files.
  using stack = new DisposableStack();
  const weights = stack.use(openWeights(options));
  model.checkWeights(weights);
  const { device, remark } = (environment.openDevice ?? openDevice)(options);
  const memory = new MemoryLedger(device);
  const plan = planBuild(options, model, device);
  const choices = new ChoiceTable(options.endTokens, environment.randomUint32);
  const { probe, clock } = environment;
  const attentionKernels = new AttentionKernels(
    device,
    (architecture) => kernelCompilation(options.runtimeKernels, architecture),
    clock,
  );
  const input = { device, model, weights, plan, options, choices, probe, attentionKernels, onProgress };
  const parts = buildModel(input);
  // All that the engine needs beside the cache is allocated: the cache gets what is left.
  const pool = sizePool(device, plan.layout, options);
  const memoryPlan = bind(plan.layout, pool.numLcmBlocks);
  const arena = new CacheArena(device, memoryPlan);
  parts.router.attachArena(arena);
  parts.built.bindCache(arena);
  const groups = cacheGroupConfigs(plan.specs, memoryPlan);
  const scheduler = createScheduler(options, plan, memoryPlan.numLcmBlocks, groups);
  const maxModelLen = maxModelLenOf(options, plan, scheduler);
  stack.move();
  return new Engine({
    post: environment.post,
    clock: environment.clock,
    scheduler,
    executor: parts.executor,
    choices,
    overlapDepth: plan.overlapDepth,
    release() {
      device.synchronize();
      parts.executor.close();
      memory.release();
    },
    limits: {
      vocabSize: model.vocabSize,
      maxModelLen,
      prefixGranularity: options.prefixGranularity,
      numLcmBlocks: memoryPlan.numLcmBlocks,
      maxNumSeqs: plan.bounds.maxSeqs,
    },
    report: [
      `device: ${remark}`,
      `weights: ${weights.description}, ${(model.numParameters / 1e6).toFixed(1)} M parameters`,
      `compute ${computeText(plan)}, cache ${plan.kvDtype}: ${pool.remark}`,
      `context: ${maxModelLen} of the model's ${model.maxPositions} tokens`,
      memory.summary(parts.mappedWeightBytes),
      ...attentionKernels.remarks(),
      ...model.remarks,
    ],
  });
}
