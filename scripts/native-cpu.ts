/**
 * Builds build/native/libgranary_cpu.so from cuda/cpu: kernels once an instruction set, the rest for any
 * x86-64. Compiles only what changed; run by itself it prints the library's path.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";

const root = dirname(import.meta.dir);
const sourceFolder = join(root, "cuda/cpu");
const outputFolder = join(root, "build/native");
const libraryPath = join(outputFolder, "libgranary_cpu.so");

/** More would starve what else runs on a small machine. */
const maxJobs = 2;

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

interface Unit {
  readonly source: string;
  readonly object: string;
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

async function run(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdout: "pipe", stderr: "pipe" });
  const [output, errors, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new Error(`${command[0]} failed on ${command.at(-1)}\n${errors}${output}`);
  if (errors.length > 0) process.stderr.write(errors);
  return output;
}

const modifiedAt = (path: string) => statSync(path).mtimeMs;

/** Up to date: compiled by the same command, and younger than every file that the compiler read. */
function isCurrent(unit: Unit, command: string): boolean {
  const stampPath = `${unit.object}.command`;
  const dependencyPath = `${unit.object}.d`;
  if (![unit.object, stampPath, dependencyPath].every((path) => existsSync(path))) return false;
  if (readFileSync(stampPath, "utf8") !== command) return false;
  const [, list] = readFileSync(dependencyPath, "utf8").split(/:\s/, 2);
  const dependencies = (list ?? "").split(/[\s\\]+/).filter((path) => path.length > 0);
  const age = modifiedAt(unit.object);
  return dependencies.every((path) => existsSync(path) && modifiedAt(path) <= age);
}

/**
 * A template of the standard library that both instruction sets instantiate
 * under one name would be linked once, and the machine without AVX-512 could get
 * the wrong one. So kernels may define weak symbols in their own namespace only.
 */
async function checkWeakSymbols(unit: Unit, object: string): Promise<void> {
  const listing = await run(["nm", "--defined-only", "-C", object]);
  const shared = listing
    .split("\n")
    .filter((line) => / [VWu] /.test(line) && !line.includes(`granary::${unit.variant.name}::`));
  if (shared.length > 0)
    throw new Error(`${relative(root, unit.source)} shares symbols:\n${shared.join("\n")}`);
}

/**
 * Returns whether it compiled. Written beside and renamed, so that two builds at a time do no harm;
 * dated by its start, so that a source saved meanwhile counts as newer.
 */
async function compile(unit: Unit, cxx: string): Promise<boolean> {
  const flags = [...commonFlags, ...unit.variant.flags];
  const command = [cxx, ...flags].join(" ");
  if (isCurrent(unit, command)) return false;
  mkdirSync(dirname(unit.object), { recursive: true });
  const temporary = `${unit.object}.${process.pid}`;
  const startedAt = new Date();
  try {
    await run([cxx, ...flags, "-MMD", "-MF", `${temporary}.d`, "-o", temporary, "-c", unit.source]);
    if (unit.variant.name !== "base") await checkWeakSymbols(unit, temporary);
    utimesSync(temporary, startedAt, startedAt);
    renameSync(`${temporary}.d`, `${unit.object}.d`);
    renameSync(temporary, unit.object);
  } finally {
    for (const left of [temporary, `${temporary}.d`]) rmSync(left, { force: true });
  }
  writeFileSync(`${unit.object}.command`, command);
  return true;
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

/** Links unless the library stands that the same command made of nothing newer. */
async function link(objects: readonly string[], cxx: string, isStale: boolean): Promise<void> {
  const stampPath = `${libraryPath}.command`;
  const command = [cxx, ...linkFlags, ...objects].join(" ");
  const isLinked = existsSync(libraryPath) && existsSync(stampPath);
  if (!isStale && isLinked && readFileSync(stampPath, "utf8") === command) {
    const linkedAt = modifiedAt(libraryPath);
    if ([...objects, exportsPath].every((path) => modifiedAt(path) <= linkedAt)) return;
  }
  const temporary = `${libraryPath}.${process.pid}`;
  try {
    await run([cxx, ...linkFlags, ...objects, "-o", temporary]);
    renameSync(temporary, libraryPath);
  } finally {
    rmSync(temporary, { force: true });
  }
  writeFileSync(stampPath, command);
}

/** Compiles and links what is out of date and returns the library's path. */
export async function buildCpuLibrary(): Promise<string> {
  const cxx = compiler();
  const all = units();
  const queue = [...all];
  let numCompiled = 0;
  const worker = async () => {
    for (let unit = queue.shift(); unit; unit = queue.shift()) {
      if (await compile(unit, cxx)) numCompiled += 1;
    }
  };
  await Promise.all(Array.from({ length: maxJobs }, worker));
  const objects = all.map((unit) => unit.object);
  await link(objects, cxx, numCompiled > 0);
  return libraryPath;
}

if (import.meta.main) console.log(await buildCpuLibrary());
