/** `granary doctor`: what this machine has, what would run where, and why. Starts no engine. */
import { availableParallelism, freemem, totalmem } from "node:os";
import { findCublasLt } from "../../ffi/cublaslt";
import { Device } from "../../ffi/device";
import { kernelLibraryPath } from "../../ffi/kernel-path";
import { loadKernelLibrary } from "../../ffi/library";
import { findNvrtc } from "../../ffi/nvrtc-probe";
import type { EmbeddedFile } from "../../ffi/unpack";
import { defaultThreads } from "../engine/open-device";
import { CubinCache } from "../runtime-kernels/cubin-cache";
import type { FlagValues } from "./parse-flags";
import type { Runtime } from "./runtime";

const gibibyte = 2 ** 30;
/** What NVRTC is tried for where there is no card to ask. */
const oldestArchitecture = "sm_80";

type Finding = readonly [string, string];

function version(number: number): string {
  return `${Math.floor(number / 1000)}.${Math.floor((number % 1000) / 10)}`;
}

function memoryText(freeBytes: number, totalBytes: number): string {
  return `${(freeBytes / gibibyte).toFixed(1)} of ${(totalBytes / gibibyte).toFixed(1)} GiB free`;
}

function inspectCpu(file: EmbeddedFile, threads: number, runtime: Runtime): readonly Finding[] {
  const memory = memoryText(freemem(), totalmem());
  const cores = `${availableParallelism()} cores, ${threads} would compute`;
  try {
    const path = kernelLibraryPath(file, runtime.environment);
    const library = loadKernelLibrary(path);
    if (library.core.granary_probe(0) !== 0) return [["CPU", `unusable: ${library.lastError()}`]];
    const device = new Device(library, { kind: "cpu", numThreads: 1 });
    const info = device.info();
    device.close();
    return [
      ["CPU", `${info.name.trim()} (${info.features})`],
      ["cores", cores],
      ["memory", memory],
      ["CPU library", path],
    ];
  } catch (error) {
    return [["CPU", `unusable: ${(error as Error).message}`]];
  }
}

interface CudaReport {
  readonly findings: readonly Finding[];
  /** Of the card, such as sm_90a; undefined when there is none to use. */
  readonly architecture: string | undefined;
  /** What the card makes of it; undefined without a card. */
  readonly cublasLt?: string;
}

const unusable = (findings: readonly Finding[]): CudaReport => ({ findings, architecture: undefined });

function inspectCuda(file: EmbeddedFile | undefined, runtime: Runtime): CudaReport {
  if (file === undefined) return unusable([["CUDA library", "not in this build (it had no nvcc)"]]);
  try {
    const path = kernelLibraryPath(file, runtime.environment);
    const library = loadKernelLibrary(path);
    if (library.core.granary_probe(0) !== 0) {
      return unusable([
        ["CUDA library", path],
        ["GPU", `none: ${library.lastError()}`],
      ]);
    }
    const device = new Device(library, { kind: "cuda" });
    const info = device.info();
    const cublasLt = findCublasLt(runtime.environment.GRANARY_CUBLASLT, device).text;
    device.close();
    const memory = memoryText(info.freeBytes, info.totalBytes);
    const capability = `compute ${info.computeMajor}.${info.computeMinor}`;
    const compute = `${capability}, ${info.numMultiprocessors} multiprocessors`;
    return {
      findings: [
        ["CUDA library", path],
        ["GPU", `${info.name}, ${compute}, ${memory}`],
        ["driver", `CUDA ${version(info.driverVersion)}; built for ${version(info.runtimeVersion)}`],
      ],
      architecture: info.features.split(" ")[0],
      cublasLt,
    };
  } catch (error) {
    return unusable([["CUDA", `unusable: ${(error as Error).message}`]]);
  }
}

function cacheText({ environment }: Runtime): string {
  const cache = CubinCache.open(environment);
  if (cache === undefined) return "none: no directory is ours alone, so each start compiles anew";
  const { numKernels, bytes, numOthers } = cache.usage();
  const entries = numOthers === 1 ? "entry" : "entries";
  const others = numOthers === 0 ? "" : `; ${numOthers} other ${entries} beside`;
  const size = `${(bytes / 2 ** 10).toFixed(0)} KiB`;
  return `${cache.directory}: ${numKernels} compiled at run time, ${size}${others}`;
}

export function doctor(flags: FlagValues, runtime: Runtime): number {
  const threads = flags.number("threads") ?? defaultThreads();
  const cpu = inspectCpu(runtime.embedded.cpuLibrary, threads, runtime);
  const cuda = inspectCuda(runtime.embedded.cudaLibrary, runtime);
  const demo = runtime.embedded.demoModel.length > 0 ? "embedded" : "not in this build";
  const choice =
    cuda.architecture !== undefined ? "CUDA: a usable GPU was found" : "the CPU: no usable GPU was found";
  const findings: readonly Finding[] = [
    ["granary", runtime.version],
    ["Bun", Bun.version],
    ["demo model", demo],
    ...cpu,
    ...cuda.findings,
    ["cuBLASLt", cuda.cublasLt ?? findCublasLt(runtime.environment.GRANARY_CUBLASLT).text],
    ["NVRTC", findNvrtc(runtime.environment.GRANARY_NVRTC, cuda.architecture ?? oldestArchitecture)],
    ["kernel cache", cacheText(runtime)],
    ["models run on", choice],
  ];
  for (const [name, text] of findings) runtime.out(`${name.padEnd(14)} ${text}\n`);
  return 0;
}
