/** Machine code of kernels on disk, by the hash of all it was made from; believed with its checksum only. */
import { createHash } from "node:crypto";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { cacheRoots, makePrivateDirectory, type UnpackEnvironment } from "../../ffi/unpack";
import { maxCachedKernels } from "../limits";

const suffix = ".cubin";
const checksumBytes = 32;

const checksum = (bytes: Uint8Array): Buffer => createHash("sha256").update(bytes).digest();

export interface CubinCacheUsage {
  /** Those that `find` would believe, and their bytes. */
  readonly numKernels: number;
  readonly bytes: number;
  /** Whatever else lies in the directory. */
  readonly numOthers: number;
}

/** What a file of the cache holds; undefined where it is not what was stored, or no file. */
function readChecked(path: string): Buffer | undefined {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return undefined;
  const content = readFileSync(path);
  const cubin = content.subarray(checksumBytes);
  return checksum(cubin).equals(content.subarray(0, checksumBytes)) ? cubin : undefined;
}

/** As `readChecked`, where also a file that cannot be read is none of ours. */
function checkedBytes(path: string): number | undefined {
  try {
    const cubin = readChecked(path);
    return cubin === undefined ? undefined : checksumBytes + cubin.length;
  } catch {
    return undefined;
  }
}

export class CubinCache {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  /** In the first cache directory that can be ours alone; undefined where none can. */
  static open(environment: UnpackEnvironment): CubinCache | undefined {
    for (const root of cacheRoots(environment)) {
      try {
        makePrivateDirectory(root);
        const directory = join(root, "kernels");
        makePrivateDirectory(directory);
        return new CubinCache(directory);
      } catch {
        // The next place.
      }
    }
    return undefined;
  }

  /** Undefined when it is not there or not what was stored. */
  find(key: string): Uint8Array | undefined {
    const path = this.#path(key);
    const cubin = readChecked(path);
    if (cubin === undefined) return undefined;
    const now = new Date();
    utimesSync(path, now, now);
    return cubin;
  }

  /** Renamed into place whole: another process sees all of it or nothing. Makes room first. */
  store(key: string, cubin: Uint8Array): void {
    this.#dropOldest(maxCachedKernels - 1);
    const temporary = mkdtempSync(join(this.directory, "new."));
    try {
      const file = join(temporary, "cubin");
      writeFileSync(file, Buffer.concat([checksum(cubin), cubin]), { mode: 0o600 });
      renameSync(file, this.#path(key));
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
  }

  usage(): CubinCacheUsage {
    const names = readdirSync(this.directory);
    const sizes = names.flatMap((name) =>
      name.endsWith(suffix) ? (checkedBytes(join(this.directory, name)) ?? []) : [],
    );
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    return { numKernels: sizes.length, bytes, numOthers: names.length - sizes.length };
  }

  #path(key: string): string {
    return join(this.directory, `${key}${suffix}`);
  }

  #files() {
    return readdirSync(this.directory)
      .filter((name) => name.endsWith(suffix))
      .flatMap((name) => {
        const path = join(this.directory, name);
        const state = statSync(path, { throwIfNoEntry: false });
        return state?.isFile() ? [{ path, usedAt: state.mtimeMs }] : [];
      });
  }

  #dropOldest(keep: number): void {
    const files = this.#files();
    if (files.length <= keep) return;
    files.sort((a, b) => a.usedAt - b.usedAt);
    for (const { path } of files.slice(0, files.length - keep)) rmSync(path, { force: true });
  }
}
