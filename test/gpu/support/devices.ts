/**
 * The two kernel libraries side by side, as they were built: nothing is compiled here, since the machine with
 * the card may have no compiler. Without a CUDA library or a card the tests that need one are skipped.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findCublasLt } from "../../../ffi/cublaslt";
import { Device, type DeviceOptions } from "../../../ffi/device";
import { type KernelLibrary, loadKernelLibrary } from "../../../ffi/library";

const nativeFolder = process.env.GRANARY_NATIVE_FOLDER ?? join(import.meta.dir, "../../..", "build/native");
const libraries = new Map<string, KernelLibrary>();

function library(kind: "cpu" | "cuda"): KernelLibrary {
  const known = libraries.get(kind);
  if (known !== undefined) return known;
  const loaded = loadKernelLibrary(join(nativeFolder, `libgranary_${kind}.so`));
  libraries.set(kind, loaded);
  return loaded;
}

/** True on a machine whose card the CUDA library can use. */
export function hasCard(): boolean {
  if (!existsSync(join(nativeFolder, "libgranary_cuda.so"))) return false;
  return library("cuda").core.granary_probe(0) === 0;
}

/** Products go through cuBLASLt wherever it is found, unless they shall do without. */
export function openCuda(options: Omit<DeviceOptions, "kind"> = {}, usesCublasLt = true): Device {
  const device = new Device(library("cuda"), { kind: "cuda", ...options });
  if (usesCublasLt) findCublasLt(process.env.GRANARY_CUBLASLT, device);
  return device;
}

/** The oracle. It runs in float32 on values that the other side has already rounded. */
export function openCpu(): Device {
  const numThreads = Math.max(1, navigator.hardwareConcurrency - 1);
  return new Device(library("cpu"), { kind: "cpu", numThreads });
}

/** Fresh for every run unless GRANARY_TEST_SEED repeats one. */
export const testSeed = Number(process.env.GRANARY_TEST_SEED ?? Date.now() % 2 ** 31);
