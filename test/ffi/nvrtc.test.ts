/** The run-time compiler where there is one: real kernels for real cards, and its own words when it fails. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Nvrtc } from "../../ffi/nvrtc";
import { toolkitLibraries } from "../../ffi/toolkit-paths";
import { writeKernelSource } from "../../scripts/flatten";
import { kernelCompilation } from "../../src/engine/kernel-compilation";
import { type AttentionKernelShape, wantedKernels } from "../../src/runtime-kernels/attention-kernels";
import { builtRuntimeKernels } from "../support/runtime-kernels";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const found = Nvrtc.search(process.env.GRANARY_NVRTC).library;
const options = ["--gpu-architecture=sm_80"];

function wide(dim: number, dtype: "bfloat16" | "float32"): AttentionKernelShape {
  const stride = 128 * dim;
  return {
    headDim: dim,
    vHeadDim: dim,
    dtype,
    kvDtype: dtype,
    pageSize: 64,
    kPageStrideBytes: stride,
    vPageStrideBytes: stride,
  };
}

describe("places of a toolkit's library", () => {
  test("are what was named and nothing else", () => {
    const folder = temporaryDirectory();
    expect(toolkitLibraries("nvrtc", "/a/file.so")).toEqual(["/a/file.so"]);
    expect(toolkitLibraries("nvrtc", folder)).toEqual([
      join(folder, "libnvrtc.so.13"),
      join(folder, "libnvrtc.so.12"),
    ]);
    expect(Nvrtc.search(folder).library).toBeUndefined();
  });

  test("begin with the loader's own when nothing was named", () => {
    expect(toolkitLibraries("nvrtc", undefined).slice(0, 2)).toEqual(["libnvrtc.so.13", "libnvrtc.so.12"]);
    expect(toolkitLibraries("nvrtc", "")).toEqual(toolkitLibraries("nvrtc", undefined));
  });

  test("may hold something that is no library", () => {
    const folder = temporaryDirectory();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "libnvrtc.so.13"), "text");
    expect(Nvrtc.search(folder).library).toBeUndefined();
  });
});

describe.skipIf(found === undefined)("the run-time compiler", () => {
  const compiler = found as Nvrtc;

  test("gives machine code that holds the one kernel", () => {
    const source = "template <int k> __global__ void f(int* out) { *out = k; }";
    const code = compiler.compile({ source, kernel: "f<3>", options });
    expect(Buffer.from(code.subarray(1, 4)).toString()).toBe("ELF");
    expect(Buffer.from(code).toString("latin1")).toContain("_Z1fILi3EEvPi");
  });

  test("says which line is wrong", () => {
    const source = "__global__ void f(int* out) {\n  *out = missing;\n}";
    expect(() => compiler.compile({ source, kernel: "f", options })).toThrow(
      /\(2\).*"missing" is undefined/s,
    );
  });

  test("refuses an architecture it does not know", () => {
    const request = { source: "__global__ void f() {}", kernel: "f", options: ["--gpu-architecture=sm_11"] };
    expect(() => compiler.compile(request)).toThrow("NVRTC failed");
  });

  test("compiles every kernel that a head dimension can want, and the cache has it the next time", () => {
    writeKernelSource();
    const kernels = builtRuntimeKernels(temporaryDirectory());
    for (const architecture of ["sm_80", "sm_90a"]) {
      for (const shape of [wide(80, "bfloat16"), wide(512, "bfloat16"), wide(320, "float32")]) {
        for (const { expression } of wantedKernels(shape, architecture)) {
          expect(kernelCompilation(kernels, architecture)(expression).isFromCache).toBe(false);
          expect(kernelCompilation(kernels, architecture)(expression).isFromCache).toBe(true);
        }
      }
    }
  }, 60_000);
});

describe("a machine that cannot compile", () => {
  test("is told what is missing", () => {
    const kernels = { ...builtRuntimeKernels(temporaryDirectory()), nvrtc: "/nowhere/libnvrtc.so" };
    expect(() => kernelCompilation(kernels, "sm_80")("f")).toThrow("libnvrtc.so.13 or .12");
    const without = { ...kernels, source: undefined };
    expect(() => kernelCompilation(without, "sm_80")("f")).toThrow("no kernel source");
  });
});
