/** Where parts of NVIDIA's toolkit that are found at run time may lie; nothing here opens them. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";

const majors = [13, 12];
const prefix = "/usr/local";
const loaderCache = "/etc/ld.so.cache";

/** Newest first, so that the toolkit that a link points to comes before the ones it might have replaced. */
function toolkitFolders(): readonly string[] {
  if (!existsSync(prefix)) return [];
  return readdirSync(prefix)
    .filter((name) => /^cuda(-[\d.]+)?$/.test(name))
    .sort((a, b) => (a === "cuda" ? -1 : b === "cuda" ? 1 : b.localeCompare(a, "en", { numeric: true })))
    .map((name) => join(prefix, name, "lib64"));
}

/**
 * Candidates for `lib<stem>.so`: what `given`, a file or a folder, names and nothing else; without it the
 * loader's own places, then toolkits below /usr/local.
 */
export function toolkitLibraries(stem: string, given: string | undefined): readonly string[] {
  const names = majors.map((major) => `lib${stem}.so.${major}`);
  if (given !== undefined && given !== "") {
    const isFolder = existsSync(given) && statSync(given).isDirectory();
    return isFolder ? names.map((name) => join(given, name)) : [given];
  }
  const files = toolkitFolders().flatMap((folder) => names.map((name) => join(folder, name)));
  return [...names, ...files.filter((path) => existsSync(path))];
}

/**
 * Files that the loader may take for `name`: a name without a slash is looked for in LD_LIBRARY_PATH, the
 * loader's cache and its standard folders, and Bun then tries the working directory.
 */
export function loaderCandidates(name: string): readonly string[] {
  if (name.includes("/")) return [name];
  const folders = (process.env.LD_LIBRARY_PATH ?? "").split(/[:;]/).filter((folder) => isAbsolute(folder));
  const cached = existsSync(loaderCache) ? readFileSync(loaderCache, "latin1").split("\0") : [];
  return [
    ...folders.map((folder) => join(folder, name)),
    ...cached.filter((text) => isAbsolute(text) && text.endsWith(`/${name}`)),
    ...["/lib64", "/usr/lib64", "/lib", "/usr/lib", process.cwd()].map((folder) => join(folder, name)),
  ].filter((path) => existsSync(path));
}
