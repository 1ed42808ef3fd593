/**
 * Builds build/native/libgranary_cpu.so from cuda/cpu: kernels once an instruction set, the rest for any
 * x86-64. Compiles only what changed; run by itself it prints the library's path.
 */
import { readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type CompilationUnit, compileAll, compileUnit, linkLibrary, runTool } from "./native-units";

const root = dirname(import.meta.dir);
const sourceFolder = join(root, "cuda/cpu");
const outputFolder = join(root, "build/native");
const libraryPath = join(outputFolder, "libgranary_cpu.so");

const commonFlags = [
  "-std=c++20",
  "-O3",
  "-fPIC",
  "-fvisibility=hidden",
  "-fvisibility-inlines-hidden",
  "-fno-exceptions",
  "-fno-rtti",
  // An fma happens where the source says so and nowhere else:
  // the two instruction sets must agree bit for bit.
  "-ffp-contract=off",
  "-fno-math-errno",
  "-Wall",
  "-Wextra",
  // g++ 12 finds its own AVX-512 intrinsics uninitialised.
  "-Wno-uninitialized",
  "-Wno-maybe-uninitialized",
];

const avx2Flags = ["-mavx2", "-mfma", "-mf16c"];
const avx512Flags = ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512"];

interface Variant {
  readonly name: string;
  readonly folders: readonly string[];
  readonly flags: readonly string[];
}

const variants: readonly Variant[] = [
  { name: "base", folders: ["runtime", "ops"], flags: [] },
  { name: "avx2", folders: ["kernels"], flags: ["-DGRANARY_ISA=avx2", ...avx2Flags] },
  { name: "avx512", folders: ["kernels"], flags: ["-DGRANARY_ISA=avx512", ...avx2Flags, ...avx512Flags] },
];

interface Unit extends CompilationUnit {
  readonly variant: Variant;
}

function units(): Unit[] {
  return variants.flatMap((variant) =>
    variant.folders.flatMap((folder) =>
      readdirSync(join(sourceFolder, folder))
        .filter((name) => name.endsWith(".cpp"))
        .sort()
        .map((name) => ({
          source: join(sourceFolder, folder, name),
          object: join(outputFolder, "cpu", variant.name, `${name.slice(0, -4)}.o`),
          variant,
        })),
    ),
  );
}

function compiler(): string {
  const found = process.env.CXX ?? Bun.which("g++") ?? Bun.which("clang++");
  if (!found) throw new Error("no C++ compiler: install g++ or clang++, or set CXX");
  return found;
}

/**
 * A template of the standard library that both instruction sets instantiate
 * under one name would be linked once, and the machine without AVX-512 could get
 * the wrong one. So kernels may define weak symbols in their own namespace only.
 */
async function checkWeakSymbols(unit: Unit, object: string): Promise<void> {
  const listing = await runTool(["nm", "--defined-only", "-C", object]);
  const shared = listing
    .split("\n")
    .filter((line) => / [VWu] /.test(line) && !line.includes(`granary::${unit.variant.name}::`));
  if (shared.length > 0)
    throw new Error(`${relative(root, unit.source)} shares symbols:\n${shared.join("\n")}`);
}

const exportsPath = join(sourceFolder, "exports.map");

const linkFlags = [
  "-shared",
  // The C++ runtime goes inside: the library must load where only a C library is installed.
  "-static-libstdc++",
  "-static-libgcc",
  `-Wl,--version-script=${exportsPath}`,
  "-Wl,-z,defs",
  "-pthread",
];

function compile(unit: Unit, cxx: string): Promise<boolean> {
  const check = (object: string) => checkWeakSymbols(unit, object);
  const command = [cxx, ...commonFlags, ...unit.variant.flags];
  return compileUnit(unit, command, unit.variant.name === "base" ? undefined : check);
}

/** Compiles and links what is out of date and returns the library's path. */
export async function buildCpuLibrary(): Promise<string> {
  const cxx = compiler();
  const all = units();
  const numCompiled = await compileAll(all, (unit) => compile(unit, cxx));
  const objects = all.map((unit) => unit.object);
  await linkLibrary(libraryPath, [cxx, ...linkFlags, ...objects], [...objects, exportsPath], numCompiled > 0);
  return libraryPath;
}

if (import.meta.main) console.log(await buildCpuLibrary());
