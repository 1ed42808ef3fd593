/** Joins device sources and all they include into one text, which a run-time compiler takes without files. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Each file once, at its first mention. Throws on an include of anything but a file of the folder. */
export function flattenSources(folder: string, entries: readonly string[]): string {
  const done = new Set<string>();
  const expand = (name: string): string => {
    if (done.has(name)) return "";
    done.add(name);
    const lines = readFileSync(join(folder, name), "utf8").split("\n");
    const text = lines.map((line) => {
      if (line.startsWith("#pragma once")) return "";
      const included = line.match(/^\s*#\s*include\s+(.*)$/)?.[1];
      if (included === undefined) return line;
      const local = included.match(/^"([\w-]+\.cuh)"$/)?.[1];
      if (local === undefined) throw new Error(`${name} includes ${included}, which is no device source`);
      return expand(local);
    });
    return `// ---- ${name}\n${text.join("\n")}`;
  };
  return entries.map(expand).join("\n");
}

/** The kernels that are compiled at run time, and what they need. */
export const runtimeKernelSources = [
  "paged-decode.cuh",
  "paged-prefill.cuh",
  "paged-attention-scalar.cuh",
] as const;

const sourceFolder = join(dirname(import.meta.dir), "cuda/kernels");
const flattenedPath = join(dirname(import.meta.dir), "build/native/runtime-kernels.cuh");

/** The flattened text in a file; untouched where it is the same. Returns its path. */
export function writeKernelSource(): string {
  const text = flattenSources(sourceFolder, runtimeKernelSources);
  if (!existsSync(flattenedPath) || readFileSync(flattenedPath, "utf8") !== text)
    writeFileSync(flattenedPath, text);
  return flattenedPath;
}
