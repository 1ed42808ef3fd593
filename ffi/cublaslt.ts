/** Finds NVIDIA's library of products and has a device use it; says which it is, or why there is none. */
import { dlopen, FFIType } from "bun:ffi";
import type { Device } from "./device";
import { absence, openToolkitLibrary } from "./toolkit-library";

export interface CublasLt {
  /** As it numbers itself, 130100 for 13.1.0; 0 where there is none. */
  readonly version: number;
  readonly text: string;
}

/** Where no device can try it. */
function readVersion(name: string): number {
  const library = dlopen(name, { cublasLtGetVersion: { args: [], returns: FFIType.u64_fast } });
  const version = Number(library.symbols.cublasLtGetVersion());
  library.close();
  return version;
}

/** `given` is a file or a folder, and then nothing else is tried. */
export function findCublasLt(given: string | undefined, device?: Device): CublasLt {
  const { library, faults } = openToolkitLibrary("cublasLt", given, (name) => {
    const version = device === undefined ? readVersion(name) : device.openCublasLt(name);
    return { version, text: `${version} (${name})` };
  });
  if (library !== undefined) return library;
  const text = `${absence("GRANARY_CUBLASLT", given, faults)}: our own products are used`;
  return { version: 0, text };
}
