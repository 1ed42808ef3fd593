/** Finds NVIDIA's library of products; the kernel library opens it again by the name that is found here. */
import { dlopen, FFIType } from "bun:ffi";
import { openToolkitLibrary, type ToolkitSearch } from "./toolkit-library";

export interface CublasLt {
  /** What dlopen takes. */
  readonly name: string;
  /** As it numbers itself: 130100 is 13.1.0. */
  readonly version: number;
}

/** `given` is a file or a folder, and then nothing else is tried. */
export function searchCublasLt(given: string | undefined): ToolkitSearch<CublasLt> {
  return openToolkitLibrary("cublasLt", given, (name) => {
    // Not closed: to map a library of hundreds of megabytes twice would take longer.
    const { symbols } = dlopen(name, { cublasLtGetVersion: { args: [], returns: FFIType.u64_fast } });
    return { name, version: Number(symbols.cublasLtGetVersion()) };
  });
}
