/** From an embedded kernel library to a path that really loads, and an honest error when there is none. */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kernelLibraryPath } from "../../ffi/kernel-path";
import { loadKernelLibrary } from "../../ffi/library";
import type { EmbeddedFile } from "../../ffi/unpack";
import { cpuLibraryPath } from "../support/cpu-device";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

function embed(path: string): EmbeddedFile {
  const sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
  return { name: "libgranary_cpu.so", path, sha256 };
}

const unusable = { XDG_CACHE_HOME: "/proc/a", TMPDIR: "/proc/b" };

describe("the path of a kernel library", () => {
  test("lies in the private directory", () => {
    const cache = temporaryDirectory();
    const path = kernelLibraryPath(embed(cpuLibraryPath), { XDG_CACHE_HOME: cache });
    expect(path).toStartWith(join(cache, "granary/"));
    const library = loadKernelLibrary(path);
    expect(library.core.granary_probe(0)).toBe(0);
    library.close();
  });

  test("is a memory file where no directory will do", () => {
    const path = kernelLibraryPath(embed(cpuLibraryPath), unusable);
    expect(path).toStartWith("/proc/self/fd/");
    const library = loadKernelLibrary(path);
    expect(library.core.granary_abi_version()).toBeGreaterThan(0);
    library.close();
  });

  test("is refused for a file that is no library, naming the places", () => {
    const path = join(temporaryDirectory(), "text.so");
    writeFileSync(path, "not a library");
    expect(() => kernelLibraryPath(embed(path), unusable)).toThrow("/proc/a/granary");
  });
});
