/** A file that lives in memory only, for a machine without a writable directory that allows execution. */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { writeFileSync } from "node:fs";
import { NativeError } from "./errors";

const libc = dlopen("libc.so.6", {
  memfd_create: { args: [FFIType.ptr, FFIType.u32], returns: FFIType.i32 },
});

/** Path under which this process can open the bytes; they go when the process ends. */
export function createMemoryFile(name: string, bytes: Uint8Array): string {
  const label = Buffer.from(`${name}\0`);
  const descriptor = libc.symbols.memfd_create(ptr(label), 0);
  if (descriptor < 0) throw new NativeError("unsupported", `cannot make a memory file for ${name}`);
  writeFileSync(descriptor, bytes);
  return `/proc/self/fd/${descriptor}`;
}
