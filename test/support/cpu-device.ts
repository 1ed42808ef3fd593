/**
 * Opens the CPU library for tests. Every device gets a copy of the library of its own, because a library
 * holds one device a process and test files share theirs.
 */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, type DeviceOptions } from "../../ffi/device";
import { loadKernelLibrary } from "../../ffi/library";
import { buildCpuLibrary } from "../../scripts/native-cpu";

/** Path of the library; what is absent or out of date in it is built now. */
export const cpuLibraryPath = await buildCpuLibrary();

export function openCpuDevice(options: Omit<DeviceOptions, "kind"> = {}): Device {
  const folder = mkdtempSync(join(tmpdir(), "granary-test-library-"));
  try {
    const copy = join(folder, "libgranary_cpu.so");
    copyFileSync(cpuLibraryPath, copy);
    return new Device(loadKernelLibrary(copy), { debugChecks: true, ...options, kind: "cpu" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
