/**
 * Read-only memory maps of whole files, of any size; addresses
 * are numbers, bytes are read by native code or small views.
 */

import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { closeSync, fstatSync, openSync } from "node:fs";
import { NativeError } from "./errors";
import { bytesAt } from "./host-memory";

const { i32, i64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  mmap: { args: [pointer, i64, i32, i32, i32, i64], returns: i64 },
  munmap: { args: [pointer, i64], returns: i32 },
  madvise: { args: [pointer, i64, i32], returns: i32 },
});

const protectRead = 1;
const mapPrivate = 2;
const adviseWillNeed = 3;

export interface MappedFile extends Disposable {
  readonly path: string;
  readonly address: number;
  readonly bytes: number;
  /** Copies a small range out. */
  read(offset: number, length: number): Uint8Array;
}

/** Maps `path`; an empty file maps to address 0. Throws NativeError when the kernel refuses. */
export function mapFile(path: string): MappedFile {
  const descriptor = openSync(path, "r");
  try {
    const bytes = fstatSync(descriptor).size;
    const address = bytes === 0 ? 0 : map(path, descriptor, bytes);
    return {
      path,
      address,
      bytes,
      read(offset, length) {
        if (offset < 0 || offset + length > bytes)
          throw new NativeError("invalid", `${path}: read beyond the end`);
        return length === 0 ? new Uint8Array() : bytesAt(address + offset, length).slice();
      },
      [Symbol.dispose]() {
        if (address !== 0) libc.symbols.munmap(address as Pointer, bytes);
      },
    };
  } finally {
    closeSync(descriptor);
  }
}

function map(path: string, descriptor: number, bytes: number): number {
  const address = Number(libc.symbols.mmap(null, bytes, protectRead, mapPrivate, descriptor, 0));
  if (address === -1) throw new NativeError("invalid", `${path}: mmap of ${bytes} bytes failed`);
  libc.symbols.madvise(address as Pointer, bytes, adviseWillNeed);
  return address;
}

/** Address of a host array that the caller keeps alive; for sources that are not files. */
export function addressOf(array: NodeJS.TypedArray): number {
  return Number(ptr(array));
}
