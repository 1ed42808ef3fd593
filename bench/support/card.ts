/** The card of this machine for a measurement; without one a line that says why, and no figures. */
import { join } from "node:path";
import { findCublasLt } from "../../ffi/cublaslt";
import { Device } from "../../ffi/device";
import { loadKernelLibrary } from "../../ffi/library";
import { messageOf } from "../../src/assert";
import { exitWith } from "./usage";

const builtHere = join(import.meta.dir, "../../build/native/libgranary_cuda.so");

/** The library is that of GRANARY_CUDA_LIBRARY, else the one built here. Ends the process without a card. */
export function openCard(): Device {
  try {
    const library = loadKernelLibrary(process.env.GRANARY_CUDA_LIBRARY || builtHere);
    const device = new Device(library, { kind: "cuda" });
    findCublasLt(process.env.GRANARY_CUBLASLT, device);
    return device;
  } catch (error) {
    exitWith(`no GPU to measure: ${messageOf(error)}`);
  }
}
