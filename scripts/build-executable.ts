/** Builds dist/granary and everything in it; with --if-needed only when a source is newer than the result. */
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeEmbedded } from "./embed";
import { writeKernelSource } from "./flatten";
import { buildCpuLibrary } from "./native-cpu";
import { buildCudaLibrary } from "./native-cuda";

export const executablePath = "dist/granary";

const sourceFolders = ["src", "ffi", "build/native"];
const sourceFiles = [
  "package.json",
  "bun.lock",
  "scripts/build-executable.ts",
  "scripts/embed.ts",
  "scripts/flatten.ts",
];

/** Entry points: the program, then the files that run as Workers. */
const entryPoints = ["src/main.ts", "src/engine/worker.ts", "src/tokenizer/tokenizer-worker.ts"];

function newestMs(path: string): number {
  const state = statSync(path, { throwIfNoEntry: false });
  if (state === undefined) return 0;
  if (!state.isDirectory()) return state.mtimeMs;
  return Math.max(0, ...readdirSync(path).map((name) => newestMs(join(path, name))));
}

function isUpToDate(): boolean {
  if (!existsSync(executablePath)) return false;
  const builtMs = statSync(executablePath).mtimeMs;
  return [...sourceFolders, ...sourceFiles].every((path) => newestMs(path) <= builtMs);
}

async function compile(): Promise<void> {
  const command = [
    process.execPath,
    "build",
    "--compile",
    // Full --minify renames what the web framework reads in its handlers' source.
    "--minify-whitespace",
    "--minify-syntax",
    // The executable reads nothing from where it is started.
    "--no-compile-autoload-dotenv",
    "--no-compile-autoload-bunfig",
    ...entryPoints,
    "--outfile",
    executablePath,
  ];
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`bun build failed:\n${output}${errors}`);
}

/** Builds and returns the executable's path. */
export async function build(options: {
  readonly withDemo: boolean;
  readonly ifNeeded: boolean;
}): Promise<string> {
  mkdirSync("build", { recursive: true });
  const cpuLibrary = await buildCpuLibrary();
  const cudaLibrary = await buildCudaLibrary();
  const kernelSource = cudaLibrary === undefined ? undefined : writeKernelSource();
  const isDemoChange = writeEmbedded({ cpuLibrary, cudaLibrary, kernelSource, withDemo: options.withDemo });
  if (options.ifNeeded && !isDemoChange && isUpToDate()) return executablePath;
  mkdirSync("dist", { recursive: true });
  await compile();
  const mebibytes = statSync(executablePath).size / 2 ** 20;
  console.error(`${executablePath}: ${mebibytes.toFixed(0)} MiB`);
  return executablePath;
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  const known = ["--without-demo", "--if-needed"];
  const unknown = args.find((argument) => !known.includes(argument));
  if (unknown !== undefined) {
    console.error(`unknown argument ${unknown}; known: ${known.join(", ")}`);
    process.exit(2);
  }
  try {
    await build({ withDemo: !args.includes("--without-demo"), ifNeeded: args.includes("--if-needed") });
  } catch (error) {
    console.error((error as Error).message);
    process.exit(1);
  }
}
