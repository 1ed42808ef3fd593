/**
 * Builds build/native/libgranary_cuda.so from cuda/kernels with nvcc. Compiles
 * only what changed; run by itself it prints the library's path and what the
 * build took. A machine without nvcc gets no library and one line that says so.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { type CompilationUnit, compileAll, compileUnit, linkLibrary } from "./native-units";

const root = dirname(import.meta.dir);
const sourceFolder = join(root, "cuda/kernels");
const objectFolder = join(root, "build/native/cuda");
const libraryPath = join(root, "build/native/libgranary_cuda.so");

/** Ampere and Hopper machine code; what is newer, or lies between, compiles the PTX when it first loads. */
const targetFlags = [
  "-gencode=arch=compute_80,code=[sm_80,compute_80]",
  "-gencode=arch=compute_90a,code=sm_90a",
];

const commonFlags = [
  "-std=c++17",
  "-O3",
  ...targetFlags,
  "-cudart=static",
  "-Werror=all-warnings",
  "-Xcompiler=-fPIC,-fno-exceptions,-Wall,-Wextra,-Werror",
];

/** nvcc on the PATH or below CUDA_HOME; undefined where there is none. */
export function findNvcc(): string | undefined {
  const home = process.env.CUDA_HOME;
  const below = home ? join(home, "bin/nvcc") : undefined;
  return below && existsSync(below) ? below : (Bun.which("nvcc") ?? undefined);
}

function units(): CompilationUnit[] {
  return readdirSync(sourceFolder)
    .filter((name) => name.endsWith(".cu"))
    .sort((a, b) => statSync(join(sourceFolder, b)).size - statSync(join(sourceFolder, a)).size)
    .map((name) => ({
      source: join(sourceFolder, name),
      object: join(objectFolder, `${name.slice(0, -3)}.o`),
    }));
}

const exportsPath = join(sourceFolder, "exports.map");

const linkFlags = [
  "-shared",
  "-cudart=static",
  // The C++ runtime goes inside: the library must load where only a C library is installed.
  "-Xcompiler=-static-libstdc++,-static-libgcc",
  "-Xlinker=-z,defs",
  `-Xlinker=--version-script=${exportsPath}`,
];

/**
 * Compiles and links what is out of date and returns the library's path; undefined where there is no nvcc.
 */
export async function buildCudaLibrary(): Promise<string | undefined> {
  const nvcc = findNvcc();
  if (nvcc === undefined) {
    console.log("no nvcc on the PATH or in CUDA_HOME: building without the CUDA library");
    return undefined;
  }
  const startedAt = performance.now();
  const all = units();
  const numCompiled = await compileAll(all, (unit) => compileUnit(unit, [nvcc, ...commonFlags]));
  const objects = all.map((unit) => unit.object);
  await linkLibrary(
    libraryPath,
    [nvcc, ...linkFlags, ...objects],
    [...objects, exportsPath],
    numCompiled > 0,
  );
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`CUDA library: ${numCompiled} of ${all.length} files compiled in ${seconds} s`);
  return libraryPath;
}

if (import.meta.main) {
  const path = await buildCudaLibrary();
  if (path !== undefined) console.log(path);
}
