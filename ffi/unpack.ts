/**
 * Brings files that are embedded in the executable into the file system, where the loader and the kernel's
 * mmap can reach them: one private directory a content hash, checked before it is believed, never rewritten.
 */
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { NativeError } from "./errors";

export interface EmbeddedFile {
  readonly name: string;
  /** Path that the runtime can read; inside an executable a virtual one. */
  readonly path: string;
  /** Hex SHA-256 of the content, computed when the executable was built. */
  readonly sha256: string;
}

export interface UnpackEnvironment {
  readonly XDG_CACHE_HOME?: string | undefined;
  readonly HOME?: string | undefined;
  readonly TMPDIR?: string | undefined;
}

const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** An empty or relative setting counts as none: nothing may depend on where the program was started. */
function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

/** Directories for what can be made again, best first. */
export function cacheRoots(environment: UnpackEnvironment): readonly string[] {
  const home = absolute(environment.HOME);
  const cache =
    absolute(environment.XDG_CACHE_HOME) ?? (home === undefined ? undefined : join(home, ".cache"));
  // The temporary directory is everybody's: one name there would be the first user's alone.
  const shared = join(absolute(environment.TMPDIR) ?? tmpdir(), `granary-${process.getuid?.() ?? "user"}`);
  return cache === undefined ? [shared] : [join(cache, "granary"), shared];
}

/** Makes a directory that is ours alone: whoever could write there could put other code in our place. */
export function makePrivateDirectory(root: string): void {
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const state = lstatSync(root);
  if (!state.isDirectory() || state.uid !== process.getuid?.() || (state.mode & 0o022) !== 0) {
    throw new NativeError("unsupported", "the directory is not ours alone to write to");
  }
}

/** True when every file is there, ours alone, and has the right content. */
function isIntact(directory: string, files: readonly EmbeddedFile[]): boolean {
  const state = lstatSync(directory, { throwIfNoEntry: false });
  if (!state?.isDirectory() || state.uid !== process.getuid?.() || (state.mode & 0o077) !== 0) return false;
  return files.every(({ name, sha256 }) => {
    const path = join(directory, name);
    return existsSync(path) && sha256Of(readFileSync(path)) === sha256;
  });
}

function unpackTo(directory: string, files: readonly EmbeddedFile[]): void {
  const temporary = mkdtempSync(`${directory}.`);
  try {
    chmodSync(temporary, 0o700);
    for (const { name, path } of files)
      writeFileSync(join(temporary, name), readFileSync(path), { mode: 0o600 });
    if (lstatSync(directory, { throwIfNoEntry: false }) !== undefined && !isIntact(directory, files)) {
      rmSync(directory, { recursive: true });
    }
    renameSync(temporary, directory);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    // Another process may have been faster; what it left is as good.
    if (!isIntact(directory, files)) throw error;
  }
}

/**
 * Path of a directory that holds `files`. `accept` may refuse a directory by throwing (a loader on a noexec
 * mount does); then the next place is tried. Throws NativeError naming what failed when no place is left.
 */
export function unpack(
  files: readonly EmbeddedFile[],
  environment: UnpackEnvironment,
  accept: (directory: string) => void = () => {},
): string {
  const key = sha256Of(Buffer.from(files.map(({ name, sha256 }) => `${name} ${sha256}\n`).join("")));
  const failures: string[] = [];
  for (const root of cacheRoots(environment)) {
    const directory = join(root, key);
    try {
      makePrivateDirectory(root);
      if (!isIntact(directory, files)) unpackTo(directory, files);
      accept(directory);
      return directory;
    } catch (error) {
      failures.push(`${root}: ${(error as Error).message}`);
    }
  }
  throw new NativeError(
    "unsupported",
    `cannot unpack ${files[0]?.name}: ${failures.join("; ")}; ` +
      "set XDG_CACHE_HOME to a writable directory that allows execution",
  );
}
