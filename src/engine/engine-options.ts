/** What an engine is started with; plain data, so that it can be sent to a Worker. */
import type { CacheDtype } from "../recipes/cache-spec";
import type { RuntimeKernelOptions } from "./kernel-compilation";

export interface EngineOptions {
  /** Directory with config.json and weights. */
  readonly modelDirectory: string;
  readonly loadFormat: "auto" | "dummy";
  readonly seed: number;
  readonly device: "auto" | "cpu" | "cuda";
  /** Paths of the kernel libraries in the file system; undefined where this build has none. */
  readonly cpuLibrary: string | undefined;
  readonly cudaLibrary: string | undefined;
  /** Compute dtype; auto = float32 on the CPU, bfloat16 on CUDA. */
  readonly dtype: "auto" | "float32" | "bfloat16";
  /** auto = the compute dtype. */
  readonly kvCacheDtype: "auto" | Extract<CacheDtype, "float32" | "bfloat16">;
  readonly maxModelLen: number | undefined;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number | undefined;
  readonly prefixGranularity: number;
  readonly numLcmBlocks: number | undefined;
  /** Share of device memory that the whole engine may take (CUDA). */
  readonly gpuMemoryUtilization: number;
  /** Pool of a CPU run in bytes; undefined = a quarter of free memory, at most 4 GiB. */
  readonly cpuCacheBytes: number | undefined;
  readonly enablePrefixCaching: boolean;
  readonly enableMixedBatch: boolean;
  /** Plan and launch a step before the last one's tokens are read; undefined = on CUDA only. */
  readonly enableOverlap: boolean | undefined;
  /** Replay recorded graphs for decode steps (CUDA). */
  readonly enableGraphs: boolean;
  readonly threads: number | undefined;
  readonly kernelPageSize: number | undefined;
  readonly debugChecks: boolean;
  readonly runtimeKernels: RuntimeKernelOptions;
  /** File or folder of cuBLASLt; undefined = wherever it is found (CUDA). */
  readonly cublasLt: string | undefined;
  /** Ids that end a generation, from the model's own files. */
  readonly endTokens: readonly number[];
}
