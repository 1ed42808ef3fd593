/** Memory that ends where an unreadable page begins: a CPU kernel that reaches too far stops the test. */
import { dlopen, FFIType } from "bun:ffi";
import type { Address, Device } from "../../../ffi/device";

const pageBytes = 4096;
const noAccess = 0;

const libc = dlopen("libc.so.6", {
  mprotect: { args: [FFIType.u64, FFIType.u64, FFIType.i32], returns: FFIType.i32 },
});

export interface GuardedMemory {
  /** What the device gave, to be freed. */
  readonly allocation: Address;
  /** The first of the bytes asked for. */
  readonly address: Address;
}

/** `bytes` against a guard page on the CPU; plain memory elsewhere. */
export function allocateGuarded(device: Device, bytes: number): GuardedMemory {
  if (device.kind !== "cpu") {
    const allocation = device.allocate(Math.max(bytes, 1), "a kernel test");
    return { allocation, address: allocation };
  }
  const size = Math.ceil(Math.max(bytes, 1) / pageBytes) * pageBytes;
  const allocation = device.allocate(size + pageBytes, "a kernel test");
  if (libc.symbols.mprotect(allocation + size, pageBytes, noAccess) !== 0)
    throw new Error("no guard page: mprotect failed");
  return { allocation, address: allocation + size - bytes };
}
