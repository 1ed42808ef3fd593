/** Compiles kernels from the embedded source for one card, once: what was compiled before comes from disk. */
import { createHash } from "node:crypto";
import type { CompileRequest } from "../../ffi/nvrtc";
import type { CubinCache } from "./cubin-cache";

/** What NVRTC does, so that a test can do it without a toolkit. */
export interface SourceCompiler {
  /** major.minor */
  readonly version: string;
  compile(request: CompileRequest): Uint8Array;
}

export interface KernelCompilerParts {
  /** Complete: it includes nothing. */
  readonly source: string;
  /** As the device names it: sm_80, sm_90a. */
  readonly architecture: string;
  readonly compiler: SourceCompiler;
  /** Undefined where no directory can hold one: then every start compiles. */
  readonly cache: Pick<CubinCache, "find" | "store"> | undefined;
}

export interface CompiledKernel {
  readonly image: Uint8Array;
  readonly isFromCache: boolean;
}

export class KernelCompiler {
  readonly #parts: KernelCompilerParts;

  constructor(parts: KernelCompilerParts) {
    this.#parts = parts;
  }

  /** `kernel` is a C++ name with its template arguments. Throws NativeError with the compiler's words. */
  compile(kernel: string): CompiledKernel {
    const { source, architecture, compiler, cache } = this.#parts;
    const options = [
      "--std=c++17",
      "--device-as-default-execution-space",
      `--gpu-architecture=${architecture}`,
    ];
    const ingredients = JSON.stringify([compiler.version, options, kernel, source]);
    const key = createHash("sha256").update(ingredients).digest("hex");
    const known = this.#ignoringFailure(() => cache?.find(key));
    if (known !== undefined) return { image: known, isFromCache: true };
    const image = compiler.compile({ source, kernel, options });
    this.#ignoringFailure(() => cache?.store(key, image));
    return { image, isFromCache: false };
  }

  /** A full or vanished disk costs time at the next start and nothing else. */
  #ignoringFailure<T>(use: () => T): T | undefined {
    try {
      return use();
    } catch {
      return undefined;
    }
  }
}
