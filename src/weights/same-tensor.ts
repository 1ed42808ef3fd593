/** Compares two tensors of a source by their bytes. */
import { type Pointer, toArrayBuffer } from "bun:ffi";
import { dtypeBytes } from "../../ffi/device";
import type { TensorSource } from "./tensor-source";

const sliceBytes = 16 * 1024 * 1024;

/** True when both tensors are mapped, have one dtype and shape, and hold the same bytes. */
export function isSameTensor(source: TensorSource, first: string, second: string): boolean {
  const [a, b] = [source.find(first), source.find(second)];
  if (a === undefined || b === undefined || a.shape.join() !== b.shape.join()) return false;
  const [x, y] = [source.data(first, a.shape), source.data(second, b.shape)];
  if (x.kind !== "mapped" || y.kind !== "mapped" || x.dtype !== y.dtype) return false;
  const bytes = a.shape.reduce((product, extent) => product * extent, dtypeBytes[x.dtype]);
  for (let offset = 0; offset < bytes; offset += sliceBytes) {
    const length = Math.min(sliceBytes, bytes - offset);
    const left = Buffer.from(toArrayBuffer(x.address as Pointer, offset, length));
    const right = Buffer.from(toArrayBuffer(y.address as Pointer, offset, length));
    if (!left.equals(right)) return false;
  }
  return true;
}
