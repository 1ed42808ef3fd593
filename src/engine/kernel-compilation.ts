/** Puts together what compiles kernels at run time, on the first wish; most models never have one. */
import { readFileSync } from "node:fs";
import { NativeError } from "../../ffi/errors";
import { Nvrtc } from "../../ffi/nvrtc";
import type { UnpackEnvironment } from "../../ffi/unpack";
import type { CompileKernel } from "../runtime-kernels/attention-kernels";
import { CubinCache } from "../runtime-kernels/cubin-cache";
import { KernelCompiler } from "../runtime-kernels/kernel-compiler";

/** Plain data, so that it can be sent to a Worker. */
export interface RuntimeKernelOptions {
  /** Path of the flattened source; undefined in a build without the CUDA library. */
  readonly source: string | undefined;
  /** File or folder of NVRTC instead of the usual places. */
  readonly nvrtc: string | undefined;
  /** Tells where the cache of machine code lies. */
  readonly environment: UnpackEnvironment;
}

function openCompiler(options: RuntimeKernelOptions, architecture: string): KernelCompiler {
  if (options.source === undefined) throw new NativeError("unsupported", "this build has no kernel source");
  const { library: compiler, faults } = Nvrtc.search(options.nvrtc);
  if (compiler === undefined) {
    const reasons = faults.length === 0 ? "was not found" : `cannot be used: ${faults.join("; ")}`;
    throw new NativeError("unsupported", `NVRTC (libnvrtc.so.13 or .12) ${reasons}`);
  }
  return new KernelCompiler({
    source: readFileSync(options.source, "utf8"),
    architecture,
    compiler,
    cache: CubinCache.open(options.environment),
  });
}

/** Compiles for an architecture such as sm_90a; throws NativeError where this machine cannot. */
export function kernelCompilation(options: RuntimeKernelOptions, architecture: string): CompileKernel {
  let compiler: KernelCompiler | undefined;
  return (kernel) => {
    compiler ??= openCompiler(options, architecture);
    return compiler.compile(kernel);
  };
}
