/** The text that a run-time compiler gets: complete, free of headers, and accepted by a compiler. */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flattenSources, runtimeKernelSources } from "../../scripts/flatten";
import { findNvcc } from "../../scripts/native-cuda";
import { runTool } from "../../scripts/native-units";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const sources = join(import.meta.dir, "../../cuda/kernels");
const flattened = flattenSources(sources, runtimeKernelSources);

function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

describe("flattened sources", () => {
  test("hold every file once, before what needs it", () => {
    const folder = folderOf({
      "base.cuh": "#pragma once\nint base;\n",
      "left.cuh": '#pragma once\n#include "base.cuh"\nint left;\n',
      "right.cuh": '#pragma once\n#include "base.cuh"\nint right;\n',
    });
    const text = flattenSources(folder, ["left.cuh", "right.cuh"]);
    expect(text.match(/int \w+/g)).toEqual(["int base", "int left", "int right"]);
    expect(text).not.toContain("#");
  });

  test("refuse a header of C, CUDA or the host side", () => {
    for (const include of ["<cstdint>", "<cuda_runtime.h>", '"runtime.h"', '"../include/granary.h"']) {
      const folder = folderOf({ "a.cuh": `#include ${include}\n` });
      expect(() => flattenSources(folder, ["a.cuh"])).toThrow("no device source");
    }
  });

  test("of the attention kernels mention no other file", () => {
    expect(flattened).not.toMatch(/^\s*#\s*(include|pragma once)/m);
    for (const name of runtimeKernelSources) expect(flattened).toContain(`// ---- ${name}`);
    const scalar = readFileSync(join(sources, "paged-attention-scalar.cuh"), "utf8");
    expect(flattened).toContain(scalar.slice(scalar.indexOf("template <")));
  });

  test.skipIf(findNvcc() === undefined)(
    "compile by themselves for dimensions between the library's",
    async () => {
      const path = join(temporaryDirectory(), "kernels.cu");
      const kernels = ["pagedDecodeKernel<80, 3>", "pagedPrefillKernel<80>", "pagedPrefillKernel<160>"];
      const instances = kernels.map(
        (kernel) => `template __global__ void ${kernel}(const __grid_constant__ AttentionParams);\n`,
      );
      writeFileSync(path, flattened + instances.join(""));
      const target = "-gencode=arch=compute_80,code=sm_80";
      await runTool([findNvcc() as string, "-std=c++17", target, "-cubin", "-o", `${path}.cubin`, path]);
      expect(readFileSync(`${path}.cubin`).subarray(1, 4).toString()).toBe("ELF");
    },
    120_000,
  );
});
