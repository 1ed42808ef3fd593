/** Chooses between CUDA and the CPU, opens the library, and says in one line what was chosen and why. */
import { availableParallelism } from "node:os";
import { findCublasLt } from "../../ffi/cublaslt";
import { Device } from "../../ffi/device";
import { loadKernelLibrary } from "../../ffi/library";
import { GranaryError } from "../assert";
import type { EngineOptions } from "./engine-options";

export interface OpenedDevice {
  readonly device: Device;
  readonly remark: string;
}

/** Threads that compute by default: all cores but one, which the server needs. */
export function defaultThreads(): number {
  return Math.max(1, availableParallelism() - 1);
}

/** Opens CUDA, or tells why it cannot be. */
function openCuda(path: string | undefined, options: EngineOptions): OpenedDevice | string {
  if (path === undefined) return "this build has no CUDA library";
  const library = loadKernelLibrary(path);
  if (library.core.granary_probe(0) !== 0) return library.lastError();
  const device = new Device(library, { kind: "cuda", debugChecks: options.debugChecks });
  const { name, freeBytes } = device.info();
  const { text } = findCublasLt(options.cublasLt, device);
  return { device, remark: `${name}, ${(freeBytes / 2 ** 30).toFixed(1)} GiB free; cuBLASLt ${text}` };
}

function openCpu(path: string | undefined, options: EngineOptions, why: string): OpenedDevice {
  if (path === undefined) throw new GranaryError("no_device", "this build has no CPU library");
  const library = loadKernelLibrary(path);
  library.check(library.core.granary_probe(0));
  const numThreads = options.threads ?? defaultThreads();
  const device = new Device(library, { kind: "cpu", numThreads, debugChecks: options.debugChecks });
  const threads = `${numThreads} thread${numThreads === 1 ? "" : "s"}`;
  return {
    device,
    remark: `CPU with ${threads} (${device.info().features})${why === "" ? "" : `; no CUDA: ${why}`}`,
  };
}

export function openDevice(options: EngineOptions): OpenedDevice {
  if (options.device === "cpu") return openCpu(options.cpuLibrary, options, "");
  const cuda = openCuda(options.cudaLibrary, options);
  if (typeof cuda !== "string") return cuda;
  if (options.device === "cuda") throw new GranaryError("no_device", `--device cuda: ${cuda}`);
  return openCpu(options.cpuLibrary, options, cuda);
}
