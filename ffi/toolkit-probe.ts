/** Looks for the parts of NVIDIA's toolkit that are found at run time and tries them. */
import { dlopen, FFIType } from "bun:ffi";
import { Nvrtc } from "./nvrtc";
import { toolkitLibraries } from "./toolkit-paths";

const trial = { source: "__global__ void trial(int* out) { *out = 1; }", kernel: "trial" };

/** Version and place of the run-time compiler and whether it works for a card, or that it is absent. */
export function findNvrtc(given: string | undefined, architecture: string): string {
  const compiler = Nvrtc.open(given);
  if (compiler === undefined) return "not found: only kernels compiled ahead of time are used";
  const found = `${compiler.version} (${compiler.path})`;
  try {
    compiler.compile({ ...trial, options: [`--gpu-architecture=${architecture}`] });
    return `${found}, compiles for ${architecture}`;
  } catch (error) {
    return `${found}, unusable: ${(error as Error).message.replaceAll("\n", " ")}`;
  }
}

/** Version and place of NVIDIA's products, or that they are absent. */
export function findCublasLt(given: string | undefined): string {
  for (const path of toolkitLibraries("cublasLt", given)) {
    try {
      const library = dlopen(path, { cublasLtGetVersion: { args: [], returns: FFIType.u64_fast } });
      const version = Number(library.symbols.cublasLtGetVersion());
      library.close();
      return `${version} (${path})`;
    } catch {
      // Not there: the next place.
    }
  }
  return "not found: our own products are used";
}
