/** Compares two tensors of a source by their bytes. */
import { dtypeBytes } from "../../ffi/device";
import { isSameMemory } from "../../ffi/host-memory";
import type { TensorSource } from "./tensor-source";

/** True when both tensors are mapped, have one dtype and shape, and hold the same bytes. */
export function isSameTensor(source: TensorSource, first: string, second: string): boolean {
  const [a, b] = [source.find(first), source.find(second)];
  if (a === undefined || b === undefined || a.shape.join() !== b.shape.join()) return false;
  const [x, y] = [source.data(first, a.shape), source.data(second, b.shape)];
  if (x.kind !== "mapped" || y.kind !== "mapped" || x.dtype !== y.dtype) return false;
  const bytes = a.shape.reduce((product, extent) => product * extent, dtypeBytes[x.dtype]);
  return isSameMemory(x.address, y.address, bytes);
}
