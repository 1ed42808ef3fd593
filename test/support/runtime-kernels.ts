/** What an engine in a test compiles kernels with: nothing, or the flattened source of this tree. */
import { join } from "node:path";
import type { RuntimeKernelOptions } from "../../src/engine/kernel-compilation";

export const noRuntimeKernels: RuntimeKernelOptions = {
  source: undefined,
  nvrtc: undefined,
  environment: {},
};

/** The build's source and whatever NVRTC this machine has, with a cache below `directory`. */
export function builtRuntimeKernels(directory: string): RuntimeKernelOptions {
  return {
    source: join(import.meta.dir, "../..", "build/native/runtime-kernels.cuh"),
    nvrtc: process.env.GRANARY_NVRTC,
    environment: { XDG_CACHE_HOME: directory },
  };
}
