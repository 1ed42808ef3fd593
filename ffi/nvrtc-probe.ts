/** Looks for NVIDIA's run-time compiler without using it. */
import { dlopen, FFIType, ptr } from "bun:ffi";

const candidates = [
  "libnvrtc.so.13",
  "libnvrtc.so.12",
  "/usr/local/cuda/lib64/libnvrtc.so.13",
  "/usr/local/cuda/lib64/libnvrtc.so.12",
];

/** Its version and name, or that it is absent. */
export function findNvrtc(): string {
  for (const path of candidates) {
    try {
      const library = dlopen(path, {
        nvrtcVersion: { args: [FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
      });
      const [major, minor] = [new Int32Array(1), new Int32Array(1)];
      const status = library.symbols.nvrtcVersion(ptr(major), ptr(minor));
      library.close();
      if (status === 0) return `${major[0]}.${minor[0]} (${path})`;
    } catch {
      // Not there: the next place.
    }
  }
  return "not found: only kernels compiled ahead of time are used";
}
