/** From flags to the options of an engine. */
import { kernelLibraryPath } from "../../ffi/kernel-path";
import type { EmbeddedFile } from "../../ffi/unpack";
import type { EngineOptions } from "../engine/engine-options";
import type { RuntimeKernelOptions } from "../engine/kernel-compilation";
import type { ModelSource } from "./model-source";
import type { FlagValues } from "./parse-flags";
import type { Runtime } from "./runtime";

const defaultPrefixGranularity = 64;
const demoPrefixGranularity = 8;

type Choice<K extends keyof EngineOptions> = EngineOptions[K];

function cudaPath(file: EmbeddedFile | undefined, device: string, runtime: Runtime): string | undefined {
  if (file === undefined || device === "cpu") return undefined;
  try {
    return kernelLibraryPath(file, runtime.environment);
  } catch (error) {
    // The library loads without a driver; what stops it here stops CUDA alone.
    if (device === "cuda") throw error;
    return undefined;
  }
}

/** The demo model's prompts are so short that its cache would never show with the usual step. */
function granularity(flags: FlagValues): Pick<EngineOptions, "prefixGranularity" | "kernelPageSize"> {
  const kernelPageSize = flags.number("kernel-page-size");
  const prefixGranularity = flags.number("prefix-granularity");
  if (prefixGranularity !== undefined) return { prefixGranularity, kernelPageSize };
  if (flags.text("model") !== undefined)
    return { prefixGranularity: defaultPrefixGranularity, kernelPageSize };
  return {
    prefixGranularity: demoPrefixGranularity,
    kernelPageSize: kernelPageSize ?? demoPrefixGranularity,
  };
}

/** What compiles kernels at run time, as the environment sets it up. */
function runtimeKernels({ embedded, environment }: Runtime): RuntimeKernelOptions {
  const { XDG_CACHE_HOME, HOME, TMPDIR, GRANARY_NVRTC } = environment;
  return {
    source: embedded.kernelSource?.path,
    nvrtc: GRANARY_NVRTC,
    environment: { XDG_CACHE_HOME, HOME, TMPDIR },
  };
}

export function engineOptions(
  flags: FlagValues,
  runtime: Runtime,
  model: ModelSource,
  endTokens: readonly number[],
): EngineOptions {
  const device = flags.required<string>("device") as Choice<"device">;
  return {
    modelDirectory: model.directory,
    loadFormat: flags.required<string>("load-format") as Choice<"loadFormat">,
    seed: flags.required("seed"),
    device,
    cpuLibrary:
      device === "cuda" ? undefined : kernelLibraryPath(runtime.embedded.cpuLibrary, runtime.environment),
    cudaLibrary: cudaPath(runtime.embedded.cudaLibrary, device, runtime),
    dtype: flags.required<string>("dtype") as Choice<"dtype">,
    kvCacheDtype: flags.required<string>("kv-cache-dtype") as Choice<"kvCacheDtype">,
    maxModelLen: flags.number("max-model-len"),
    maxNumSeqs: flags.required("max-num-seqs"),
    maxNumBatchedTokens: flags.number("max-num-batched-tokens"),
    ...granularity(flags),
    numLcmBlocks: flags.number("num-lcm-blocks"),
    gpuMemoryUtilization: flags.required("gpu-memory-utilization"),
    cpuCacheBytes: flags.number("cpu-cache-bytes"),
    enablePrefixCaching: !flags.isSet("no-enable-prefix-caching"),
    enableMixedBatch: flags.isSet("enable-mixed-batch"),
    enableOverlap: flags.isSet("no-overlap") ? false : undefined,
    enableGraphs: !flags.isSet("enforce-eager"),
    threads: flags.number("threads"),
    debugChecks: flags.isSet("debug-checks"),
    runtimeKernels: runtimeKernels(runtime),
    cublasLt: runtime.environment.GRANARY_CUBLASLT,
    endTokens,
  };
}
