/** Where parts of NVIDIA's toolkit that are found at run time may lie; nothing here opens them. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const majors = [13, 12];
const prefix = "/usr/local";

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
  return [...names, ...toolkitFolders().flatMap((folder) => names.map((name) => join(folder, name)))];
}
