/**
 * Opens the CPU library for tests with chosen threads and instruction set. It loads a copy of its own, so
 * that a device which another test file holds open in this process is another library.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device } from "../../../ffi/device";
import { type KernelLibrary, loadKernelLibrary } from "../../../ffi/library";
import { buildCpuLibrary } from "../../../scripts/native-cpu";

export const instructionSets = ["avx2", "avx512"] as const;
export type InstructionSet = (typeof instructionSets)[number];

export interface CpuOptions {
  readonly numThreads?: number;
  readonly isa?: InstructionSet;
  readonly debugChecks?: boolean;
}

/** The environment that the library reads is the C one; assignments to process.env do not reach it. */
const libc = dlopen("libc.so.6", {
  setenv: { args: [FFIType.ptr, FFIType.ptr, FFIType.i32], returns: FFIType.i32 },
  unsetenv: { args: [FFIType.ptr], returns: FFIType.i32 },
});

const cString = (text: string) => new TextEncoder().encode(`${text}\0`);

export function setCEnvironment(name: string, value: string | undefined): void {
  const key = cString(name);
  if (value === undefined) libc.symbols.unsetenv(ptr(key));
  else libc.symbols.setenv(ptr(key), ptr(cString(value)), 1);
}

/** Builds what is out of date and loads a private copy of the library. */
export async function loadCpuLibrary(): Promise<KernelLibrary> {
  const built = await buildCpuLibrary();
  const folder = mkdtempSync(join(tmpdir(), "granary-kernels-"));
  const copy = join(folder, "libgranary_cpu.so");
  copyFileSync(built, copy);
  const library = loadKernelLibrary(copy);
  rmSync(folder, { recursive: true });
  return library;
}

export function openCpuDevice(library: KernelLibrary, options: CpuOptions = {}): Device {
  setCEnvironment("GRANARY_CPU_ISA", options.isa);
  try {
    return new Device(library, {
      kind: "cpu",
      numThreads: options.numThreads ?? 1,
      debugChecks: options.debugChecks ?? false,
    });
  } finally {
    setCEnvironment("GRANARY_CPU_ISA", undefined);
  }
}

/** Instruction sets that this machine can run. */
export function availableInstructionSets(library: KernelLibrary): readonly InstructionSet[] {
  const device = openCpuDevice(library);
  const features = device.info().features.split(" ");
  device.close();
  return instructionSets.filter((isa) => features.includes(isa === "avx512" ? "avx512f" : isa));
}
