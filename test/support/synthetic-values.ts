/**
 * Values of synthetic tensors by their published rule,
 * element by element; twin of the kernel that makes them.
 */
import { createHash } from "node:crypto";

export interface SyntheticRecipe {
  readonly shape: readonly number[];
  readonly scale: number;
  readonly offset: number;
}

function mix(word: number): number {
  let x = word >>> 0;
  x = (x ^ (x >>> 16)) >>> 0;
  x = Math.imul(x, 0x21f0aaad) >>> 0;
  x = (x ^ (x >>> 15)) >>> 0;
  x = Math.imul(x, 0x735a2d97) >>> 0;
  return (x ^ (x >>> 15)) >>> 0;
}

const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);

/** The upper half of a float32, rounded to nearest, ties to even. */
function bfloat16Bits(value: number): number {
  float[0] = value;
  const bits = word[0] as number;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

function bfloat16Value(bits: number): number {
  word[0] = bits << 16;
  return float[0] as number;
}

/** bfloat16 bits of every element, row-major. */
export function syntheticBits(seed: number, name: string, recipe: SyntheticRecipe): Uint16Array {
  const digest = createHash("sha256").update(`${seed}/${name}`).digest();
  const [a, b] = [digest.readUInt32LE(0), digest.readUInt32LE(4)];
  const count = recipe.shape.reduce((product, extent) => product * extent, 1);
  return Uint16Array.from({ length: count }, (_, i) => {
    const h = mix(mix(i ^ a) + b);
    const x = ((h >>> 8) + 0.5) / 2 ** 23 - 1;
    return bfloat16Bits(Math.fround(recipe.offset + recipe.scale * Math.sqrt(3) * x));
  });
}

export function syntheticValues(seed: number, name: string, recipe: SyntheticRecipe): Float64Array {
  return Float64Array.from(syntheticBits(seed, name, recipe), bfloat16Value);
}
