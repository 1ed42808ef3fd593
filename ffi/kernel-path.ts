/** Finds a path from which an embedded kernel library really loads. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadKernelLibrary } from "./library";
import { createMemoryFile } from "./memory-file";
import { type EmbeddedFile, type UnpackEnvironment, unpack } from "./unpack";

/** Tries the unpacked file first, a memory file last. Throws with the first failure when neither loads. */
export function kernelLibraryPath(file: EmbeddedFile, environment: UnpackEnvironment): string {
  const load = (path: string) => {
    loadKernelLibrary(path).close();
    return path;
  };
  try {
    return join(
      unpack([file], environment, (directory) => void load(join(directory, file.name))),
      file.name,
    );
  } catch (error) {
    try {
      return load(createMemoryFile(file.name, readFileSync(file.path)));
    } catch {
      throw error;
    }
  }
}
