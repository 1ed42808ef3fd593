/** Host memory by address: looks at bytes that native code or a mapped file owns, without copying them. */
import { dlopen, FFIType, type Pointer, toArrayBuffer } from "bun:ffi";

const libc = dlopen("libc.so.6", {
  memcmp: { args: [FFIType.ptr, FFIType.ptr, FFIType.i64], returns: FFIType.i32 },
});

/** A view that is valid as long as the memory is. */
export function bytesAt(address: number, length: number): Uint8Array {
  return new Uint8Array(toArrayBuffer(address as Pointer, 0, length));
}

export function isSameMemory(first: number, second: number, bytes: number): boolean {
  return bytes === 0 || libc.symbols.memcmp(first as Pointer, second as Pointer, bytes) === 0;
}
