/**
 * What a model needs from a checkpoint, and the check that it is all there before any device memory is taken:
 * missing, extra and mis-shaped tensors are one clear error each.
 */
import { GranaryError } from "../assert";
import type { TensorInfo, TensorSource } from "./tensor-source";

export interface RequiredTensor {
  readonly name: string;
  readonly shape: readonly number[];
  /** May be absent; the model then does without. */
  readonly optional?: boolean;
}

const floatDtypes = new Set(["F32", "BF16", "F16"]);

function describe(shape: readonly number[]): string {
  return `[${shape.join(", ")}]`;
}

function checkOne(
  required: RequiredTensor,
  info: TensorInfo | undefined,
  source: TensorSource,
): string | undefined {
  if (info === undefined) {
    return required.optional ? undefined : `tensor '${required.name}' is missing from ${source.description}`;
  }
  const sameShape =
    info.shape.length === required.shape.length &&
    info.shape.every((extent, i) => extent === required.shape[i]);
  if (!sameShape) {
    const shapes = `${describe(info.shape)}, the configuration needs ${describe(required.shape)}`;
    return `${info.origin}: tensor '${info.name}' has shape ${shapes}`;
  }
  if (!floatDtypes.has(info.dtype)) return `${info.origin}: tensor '${info.name}' has dtype ${info.dtype}`;
  return undefined;
}

/**
 * Throws one error that names file and tensor. `ignored` tells
 * which further tensors may lie in the files without being used.
 */
export function checkManifest(
  source: TensorSource,
  required: readonly RequiredTensor[],
  ignored: (name: string) => boolean,
): void {
  const held = source.list();
  if (held === undefined) return;
  const faults = required.map((tensor) => checkOne(tensor, source.find(tensor.name), source));
  const needed = new Set(required.map(({ name }) => name));
  for (const { name, origin } of held) {
    if (!needed.has(name) && !ignored(name))
      faults.push(`${origin}: tensor '${name}' belongs to nothing in this model`);
  }
  const found = faults.filter((fault) => fault !== undefined);
  if (found.length === 0) return;
  const more = found.length > 1 ? ` (and ${found.length - 1} more such faults)` : "";
  throw new GranaryError("invalid_checkpoint", `${found[0]}${more}`);
}
