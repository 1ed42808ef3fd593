/**
 * Builds build/native/libgranary_cuda.so from cuda/kernels with nvcc. Compiles
 * only what changed; run by itself it prints the library's path and what the
 * build took. A machine without nvcc gets no library and one line that says so.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

const root = dirname(import.meta.dir);
const sourceFolder = join(root, "cuda/kernels");
const objectFolder = join(root, "build/native/cuda");
const libraryPath = join(root, "build/native/libgranary_cuda.so");

/** More would starve what else runs on a small machine. */
const maxJobs = 2;

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

interface Unit {
  readonly source: string;
  readonly object: string;
}

/** nvcc on the PATH or below CUDA_HOME; undefined where there is none. */
export function findNvcc(): string | undefined {
  const home = process.env.CUDA_HOME;
  const below = home ? join(home, "bin/nvcc") : undefined;
  return below && existsSync(below) ? below : (Bun.which("nvcc") ?? undefined);
}

function units(): Unit[] {
  return readdirSync(sourceFolder)
    .filter((name) => name.endsWith(".cu"))
    .sort((a, b) => statSync(join(sourceFolder, b)).size - statSync(join(sourceFolder, a)).size)
    .map((name) => ({
      source: join(sourceFolder, name),
      object: join(objectFolder, `${name.slice(0, -3)}.o`),
    }));
}

async function run(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { stdout: "pipe", stderr: "pipe" });
  const [output, errors, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new Error(`${command[0]} failed on ${command.at(-1)}\n${errors}${output}`);
}

const modifiedAt = (path: string) => statSync(path).mtimeMs;

/** Up to date: compiled by the same command, and younger than every file that the compiler read. */
function isCurrent(unit: Unit, command: string): boolean {
  const stampPath = `${unit.object}.command`;
  const dependencyPath = `${unit.object}.d`;
  if (![unit.object, stampPath, dependencyPath].every((path) => existsSync(path))) return false;
  if (readFileSync(stampPath, "utf8") !== command) return false;
  const list = readFileSync(dependencyPath, "utf8").split(/:\s/, 2)[1] ?? "";
  const dependencies = list.split(/[\s\\]+/).filter((path) => path.length > 0);
  const age = modifiedAt(unit.object);
  return dependencies.every((path) => existsSync(path) && modifiedAt(path) <= age);
}

/** Returns whether it compiled. Written beside and renamed, so that two builds at a time do no harm. */
async function compile(unit: Unit, nvcc: string): Promise<boolean> {
  const command = [nvcc, ...commonFlags].join(" ");
  if (isCurrent(unit, command)) return false;
  const temporary = `${unit.object}.${process.pid}.o`;
  await run([nvcc, ...commonFlags, "-MMD", "-MF", `${temporary}.d`, "-o", temporary, "-c", unit.source]);
  renameSync(`${temporary}.d`, `${unit.object}.d`);
  renameSync(temporary, unit.object);
  writeFileSync(`${unit.object}.command`, command);
  return true;
}

async function link(objects: readonly string[], nvcc: string): Promise<void> {
  const temporary = `${libraryPath}.${process.pid}`;
  // The C++ runtime goes inside: the library must load where only a C library is installed.
  const host = ["-Xcompiler=-static-libstdc++,-static-libgcc", "-Xlinker=-z,defs"];
  const exports = `-Xlinker=--version-script=${join(sourceFolder, "exports.map")}`;
  await run([nvcc, "-shared", "-cudart=static", ...host, exports, ...objects, "-ldl", "-o", temporary]);
  renameSync(temporary, libraryPath);
}

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
  mkdirSync(objectFolder, { recursive: true });
  const all = units();
  const queue = [...all];
  let numCompiled = 0;
  const worker = async () => {
    for (let unit = queue.shift(); unit; unit = queue.shift()) {
      if (await compile(unit, nvcc)) numCompiled += 1;
    }
  };
  await Promise.all(Array.from({ length: maxJobs }, worker));
  const objects = all.map((unit) => unit.object);
  const linkedAt = existsSync(libraryPath) ? modifiedAt(libraryPath) : 0;
  if (numCompiled > 0 || objects.some((object) => modifiedAt(object) > linkedAt)) await link(objects, nvcc);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`CUDA library: ${numCompiled} of ${all.length} files compiled in ${seconds} s`);
  return libraryPath;
}

if (import.meta.main) {
  const path = await buildCudaLibrary();
  if (path !== undefined) console.log(path);
}
