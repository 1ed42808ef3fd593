/** What both kernel libraries' builds share: compile what is out of date, a few at a time, then link. */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

/** More would starve what else runs on a small machine. */
const maxJobs = 2;

export interface CompilationUnit {
  readonly source: string;
  readonly object: string;
}

/** Runs a tool and returns what it printed; throws with its errors when it fails. */
export async function runTool(command: readonly string[]): Promise<string> {
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

/** True when the file beside `product` says that the same command made it. */
function isMadeBy(product: string, command: string): boolean {
  const stampPath = `${product}.command`;
  return existsSync(product) && existsSync(stampPath) && readFileSync(stampPath, "utf8") === command;
}

/** Up to date: compiled by the same command, and younger than every file that the compiler read. */
function isCurrent(object: string, command: string): boolean {
  const dependencyPath = `${object}.d`;
  if (!isMadeBy(object, command) || !existsSync(dependencyPath)) return false;
  const [, list] = readFileSync(dependencyPath, "utf8").split(/:\s/, 2);
  const dependencies = (list ?? "").split(/[\s\\]+/).filter((path) => path.length > 0);
  const age = modifiedAt(object);
  return dependencies.every((path) => existsSync(path) && modifiedAt(path) <= age);
}

/**
 * Returns whether it compiled. Written beside and renamed, so that two builds at a time do no harm; dated by
 * its start, so that a source saved meanwhile counts as newer. `check` may refuse an object by throwing.
 */
export async function compileUnit(
  { source, object }: CompilationUnit,
  compilerAndFlags: readonly string[],
  check: (object: string) => Promise<void> = async () => {},
): Promise<boolean> {
  const command = compilerAndFlags.join(" ");
  if (isCurrent(object, command)) return false;
  mkdirSync(dirname(object), { recursive: true });
  const temporary = `${object}.${process.pid}.o`;
  const startedAt = new Date();
  try {
    await runTool([...compilerAndFlags, "-MMD", "-MF", `${temporary}.d`, "-o", temporary, "-c", source]);
    await check(temporary);
    utimesSync(temporary, startedAt, startedAt);
    renameSync(`${temporary}.d`, `${object}.d`);
    renameSync(temporary, object);
  } finally {
    for (const left of [temporary, `${temporary}.d`]) rmSync(left, { force: true });
  }
  writeFileSync(`${object}.command`, command);
  return true;
}

/** Works through all units, a few at a time; returns how many `compile` really compiled. */
export async function compileAll<U>(
  units: readonly U[],
  compile: (unit: U) => Promise<boolean>,
): Promise<number> {
  const queue = [...units];
  let numCompiled = 0;
  const worker = async () => {
    for (let unit = queue.shift(); unit !== undefined; unit = queue.shift()) {
      if (await compile(unit)) numCompiled++;
    }
  };
  await Promise.all(Array.from({ length: maxJobs }, worker));
  return numCompiled;
}

/** Links unless the library stands that the same command made of nothing newer than `inputs`. */
export async function linkLibrary(
  path: string,
  command: readonly string[],
  inputs: readonly string[],
  isStale: boolean,
): Promise<void> {
  const text = command.join(" ");
  const isOlder = (input: string) => modifiedAt(input) <= modifiedAt(path);
  if (!isStale && isMadeBy(path, text) && inputs.every(isOlder)) return;
  const temporary = `${path}.${process.pid}`;
  try {
    await runTool([...command, "-o", temporary]);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
  writeFileSync(`${path}.command`, text);
}
