/** The project's own text as git knows it: tracked files by path from the root, read once. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const projectRoot = join(import.meta.dir, "../..");

export interface SourceFile {
  /** From the project's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
}

/** Text that people write; data and what tools generate is not. */
const writtenFolders = /^(src|ffi|cuda|scripts|bench|test|docs)\//;
const dataFiles = /^(test\/fixtures|src\/demo|scripts\/train-demo\/text)\//;

/** What git tracks; where there is no git, what lies in the folders that people write in. */
function projectPaths(): readonly string[] {
  const listed = Bun.spawnSync(["git", "ls-files", "-z"], { cwd: projectRoot });
  if (listed.exitCode === 0) return listed.stdout.toString().split("\0").filter(Boolean);
  return [...new Bun.Glob("{src,ffi,cuda,scripts,bench,test,docs}/**").scanSync(projectRoot)].sort();
}

function read(path: string): SourceFile | undefined {
  try {
    const text = readFileSync(join(projectRoot, path), "utf8");
    const lines = text.split("\n");
    return { path, text, lines: lines.at(-1) === "" ? lines.slice(0, -1) : lines };
  } catch {
    // Removed, but not yet in the index.
    return undefined;
  }
}

/** Every written file of the project. */
export const projectFiles: readonly SourceFile[] = projectPaths()
  .filter((path) => !dataFiles.test(path) && (writtenFolders.test(path) || !path.includes("/")))
  .map(read)
  .filter((file) => file !== undefined);

const sourceExtensions = /\.(ts|cpp|h|cu|cuh|py)$/;

/** Programs: TypeScript, C++, CUDA and Python. */
export const sourceFiles = projectFiles.filter(({ path }) => sourceExtensions.test(path));

export const typeScriptFiles = sourceFiles.filter(({ path }) => path.endsWith(".ts"));

export const nativeFiles = sourceFiles.filter(({ path }) => /\.(cpp|h|cu|cuh)$/.test(path));

/** Files below one of these folders. */
export function filesIn(files: readonly SourceFile[], ...folders: readonly string[]): readonly SourceFile[] {
  return files.filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)));
}

/** "path:line: text" for every line that the pattern finds. */
export function linesMatching(files: readonly SourceFile[], pattern: RegExp): string[] {
  return files.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [])),
  );
}
