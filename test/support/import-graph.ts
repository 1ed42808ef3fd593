/** Which module of the project imports which, from their import statements. */
import { dirname, join, normalize } from "node:path";
import { type SourceFile, typeScriptFiles } from "./source-files";

export interface Import {
  readonly from: string;
  /** A project path with its extension, or a package's name. */
  readonly to: string;
  /** Erased at run time. */
  readonly isTypeOnly: boolean;
}

const statement = /^(?:import|export)\s+(type\s+)?(?:[^;"']*?\sfrom\s+)?"([^"]+)"/gm;
const known = new Set(typeScriptFiles.map(({ path }) => path));

function resolve(from: string, specifier: string): string {
  if (!specifier.startsWith(".")) return specifier;
  const base = normalize(join(dirname(from), specifier));
  return [base, `${base}.ts`, `${base}/index.ts`].find((path) => known.has(path)) ?? base;
}

export function importsOf({ path, text }: SourceFile): readonly Import[] {
  return [...text.matchAll(statement)].map(([, type, specifier = ""]) => ({
    from: path,
    to: resolve(path, specifier),
    isTypeOnly: type !== undefined,
  }));
}

export const allImports: readonly Import[] = typeScriptFiles.flatMap(importsOf);

/** The folder of a module that rules speak of: "src/cache/core" as "cache/core", "ffi" as "ffi". */
export function folderOf(path: string): string {
  return dirname(path).replace(/^src\/?/, "");
}

/** "importer -> imported" for imports from below `from` to below any of `to`. */
export function importsBetween(from: string, to: readonly string[]): string[] {
  const isIn = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`);
  return allImports
    .filter((entry) => isIn(entry.from, from) && to.some((folder) => isIn(entry.to, folder)))
    .map((entry) => `${entry.from} -> ${entry.to}`);
}

/** Modules that import each other in a ring by what runs, each ring once. */
export function importRings(): string[][] {
  const edges = new Map<string, string[]>();
  for (const { from, to, isTypeOnly } of allImports) {
    if (!isTypeOnly && known.has(to)) edges.set(from, [...(edges.get(from) ?? []), to]);
  }
  const done = new Set<string>();
  const rings: string[][] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const at = trail.indexOf(path);
    if (at >= 0) rings.push(trail.slice(at));
    if (at >= 0 || done.has(path)) return;
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of edges.keys()) visit(path, []);
  return rings;
}
