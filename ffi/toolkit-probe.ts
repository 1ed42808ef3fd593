/** Looks for the parts of NVIDIA's toolkit that are found at run time, without using them. */
import { dlopen, FFIType, ptr } from "bun:ffi";

/** Where a library of that stem may lie: the loader's own places first, then the toolkit's folder. */
function candidates(stem: string): readonly string[] {
  const names = [`${stem}.so.13`, `${stem}.so.12`];
  return [...names, ...names.map((name) => `/usr/local/cuda/lib64/${name}`)];
}

/** What `read` says of the first library that opens; undefined when none does. */
function probe(stem: string, read: (path: string) => string | undefined): string | undefined {
  for (const path of candidates(stem)) {
    try {
      const version = read(path);
      if (version !== undefined) return `${version} (${path})`;
    } catch {
      // Not there: the next place.
    }
  }
  return undefined;
}

/** Version and place of the run-time compiler, or that it is absent. */
export function findNvrtc(): string {
  const found = probe("libnvrtc", (path) => {
    const library = dlopen(path, {
      nvrtcVersion: { args: [FFIType.ptr, FFIType.ptr], returns: FFIType.i32 },
    });
    const [major, minor] = [new Int32Array(1), new Int32Array(1)];
    const status = library.symbols.nvrtcVersion(ptr(major), ptr(minor));
    library.close();
    return status === 0 ? `${major[0]}.${minor[0]}` : undefined;
  });
  return found ?? "not found: only kernels compiled ahead of time are used";
}

/** Version and place of NVIDIA's products, or that they are absent. */
export function findCublasLt(): string {
  const found = probe("libcublasLt", (path) => {
    const library = dlopen(path, { cublasLtGetVersion: { args: [], returns: FFIType.u64_fast } });
    const version = Number(library.symbols.cublasLtGetVersion());
    library.close();
    return String(version);
  });
  return found ?? "not found: our own products are used";
}
