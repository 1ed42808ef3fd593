/** Compiling once and never twice: what makes a cached kernel the right one, and life without a disk. */
import { describe, expect, test } from "bun:test";
import type { CompileRequest } from "../../ffi/nvrtc";
import { CubinCache } from "../../src/runtime-kernels/cubin-cache";
import { KernelCompiler, type KernelCompilerParts } from "../../src/runtime-kernels/kernel-compiler";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

/** A compiler whose machine code names what it was made from. */
function recorder(version = "13.0") {
  const requests: CompileRequest[] = [];
  return {
    requests,
    version,
    compile(request: CompileRequest): Uint8Array {
      requests.push(request);
      return Buffer.from(JSON.stringify([version, request]));
    },
  };
}

const base = { source: "source", architecture: "sm_90a" };

describe("the compiler of kernels", () => {
  test("compiles a kernel once and finds it again after a restart", () => {
    const cache = new CubinCache(temporaryDirectory());
    const compiler = recorder();
    const first = new KernelCompiler({ ...base, compiler, cache }).compile("f<1>");
    const second = new KernelCompiler({ ...base, compiler, cache }).compile("f<1>");
    expect(first.isFromCache).toBe(false);
    expect(second.isFromCache).toBe(true);
    expect(Buffer.from(second.image)).toEqual(Buffer.from(first.image));
    expect(compiler.requests).toHaveLength(1);
    expect(compiler.requests[0]).toMatchObject({ source: "source", kernel: "f<1>" });
    expect(compiler.requests[0]?.options).toContain("--gpu-architecture=sm_90a");
  });

  test("takes nothing from the cache that was made of anything else", () => {
    const cache = new CubinCache(temporaryDirectory());
    const variants: [Partial<KernelCompilerParts>, string][] = [
      [{}, "f<1>"],
      [{}, "f<2>"],
      [{ source: "other" }, "f<1>"],
      [{ architecture: "sm_80" }, "f<1>"],
      [{ compiler: recorder("12.9") }, "f<1>"],
    ];
    const images = variants.map(([parts, kernel]) => {
      const made = new KernelCompiler({ ...base, compiler: recorder(), cache, ...parts }).compile(kernel);
      expect(made.isFromCache).toBe(false);
      return Buffer.from(made.image).toString();
    });
    expect(new Set(images).size).toBe(variants.length);
  });

  test("goes on without a cache, and with one whose disk is gone", () => {
    const broken = new CubinCache("/nowhere/at/all");
    for (const cache of [undefined, broken]) {
      const compiler = recorder();
      const kernels = new KernelCompiler({ ...base, compiler, cache });
      expect(kernels.compile("f<1>").isFromCache).toBe(false);
      expect(kernels.compile("f<1>").isFromCache).toBe(false);
      expect(compiler.requests).toHaveLength(2);
    }
  });

  test("passes on what the compiler says", () => {
    const compiler = {
      version: "13.0",
      compile(): Uint8Array {
        throw new Error("line 3 is wrong");
      },
    };
    const kernels = new KernelCompiler({ ...base, compiler, cache: undefined });
    expect(() => kernels.compile("f<1>")).toThrow("line 3 is wrong");
  });
});
