/**
 * Weights without a checkpoint: each tensor is a function of its name, so any
 * configuration can be run at full size. Scales come from the directory's
 * weights.json when it has one, else they are chosen by the tensor's name and shape.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { mapFile } from "../../ffi/mmap";
import { GranaryError } from "../assert";
import { readSafetensorsHeader } from "./safetensors";
import type { TensorData, TensorInfo, TensorSource } from "./tensor-source";

const recipeFile = "weights.json";
const integersFile = "reference.safetensors";
const integersPrefix = "weights/";

interface TensorRecipe {
  readonly shape: readonly number[];
  readonly scale: number;
  readonly offset: number;
}

/** First two little-endian words of SHA-256("seed/name"). */
export function syntheticKey(seed: number, name: string): { readonly a: number; readonly b: number } {
  const digest = createHash("sha256").update(`${seed}/${name}`).digest();
  return { a: digest.readUInt32LE(0), b: digest.readUInt32LE(4) };
}

/** Spread that keeps activations and logits of a random model in a useful range. */
export function defaultScale(
  name: string,
  shape: readonly number[],
): { readonly scale: number; readonly offset: number } {
  const fanIn = shape[shape.length - 1] ?? 1;
  if (shape.length >= 2 && fanIn > 1) {
    const isVocabulary = name.includes("lm_head") || name.includes("embed");
    return { scale: (isVocabulary ? 2 : 1) / Math.sqrt(fanIn), offset: 0 };
  }
  return { scale: 0.1, offset: name.includes("norm") && !name.endsWith("bias") ? 1 : 0 };
}

function isTensorRecipe(value: unknown): value is TensorRecipe {
  const { shape, scale, offset } = (value ?? {}) as Partial<TensorRecipe>;
  const isShape =
    Array.isArray(shape) && shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0);
  return isShape && Number.isFinite(scale) && Number.isFinite(offset);
}

function readRecipe(path: string): { seed: number; tensors: Map<string, TensorRecipe> } {
  const fail = (reason: string): never => {
    throw new GranaryError("invalid_checkpoint", `${path}: ${reason}`);
  };
  let parsed: { seed?: unknown; tensors?: unknown } | null = null;
  try {
    parsed = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    fail(`not JSON (${(error as Error).message})`);
  }
  const { seed, tensors } = parsed ?? {};
  if (typeof seed !== "number" || typeof tensors !== "object" || tensors === null) {
    return fail("it has no seed or no tensors");
  }
  for (const [name, tensor] of Object.entries(tensors)) {
    if (!isTensorRecipe(tensor)) fail(`tensor '${name}' needs a shape, a scale and an offset`);
  }
  return { seed, tensors: new Map(Object.entries(tensors)) };
}

/** Integer tensors that the recipe keeps as they are, mapped from the file beside it. */
function openIntegers(directory: string): {
  infos: Map<string, TensorInfo>;
  data: Map<string, TensorData>;
  close(): void;
} {
  const path = join(directory, integersFile);
  const infos = new Map<string, TensorInfo>();
  const data = new Map<string, TensorData>();
  if (!existsSync(path)) return { infos, data, close: () => {} };
  const file = mapFile(path);
  for (const entry of readSafetensorsHeader(file)) {
    if (!entry.name.startsWith(integersPrefix) || entry.dtype !== "I32") continue;
    const name = entry.name.slice(integersPrefix.length);
    infos.set(name, { name, shape: entry.shape, dtype: entry.dtype, origin: path });
    data.set(name, { kind: "mapped", address: file.address + entry.offsetBytes, dtype: "int32" });
  }
  return { infos, data, close: () => file[Symbol.dispose]() };
}

/**
 * Synthetic source of a directory; with a recipe it holds
 * exactly the recipe's tensors, else whatever is asked for.
 */
export function openSynthetic(directory: string, seed = 0): TensorSource {
  const path = join(directory, recipeFile);
  const recipe = existsSync(path) ? readRecipe(path) : undefined;
  const integers = openIntegers(directory);
  const origin = recipe === undefined ? "synthetic weights" : path;
  const infoOf = (name: string, { shape }: TensorRecipe): TensorInfo => ({
    name,
    shape,
    dtype: "BF16",
    origin,
  });
  return {
    description: `synthetic weights, seed ${recipe?.seed ?? seed}`,
    list() {
      if (recipe === undefined) return undefined;
      return [
        ...[...recipe.tensors].map(([name, tensor]) => infoOf(name, tensor)),
        ...integers.infos.values(),
      ];
    },
    find(name) {
      const tensor = recipe?.tensors.get(name);
      return tensor === undefined ? integers.infos.get(name) : infoOf(name, tensor);
    },
    data(name, shape) {
      const integer = integers.data.get(name);
      if (integer !== undefined) return integer;
      const { scale, offset } = recipe?.tensors.get(name) ?? defaultScale(name, shape);
      return { kind: "synthetic", ...syntheticKey(recipe?.seed ?? seed, name), scale, offset };
    },
    [Symbol.dispose]: integers.close,
  };
}
