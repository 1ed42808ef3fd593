/** bfloat16 by hand, as the kernels define it: nearest, ties to even. */
import type { Dtype } from "../../../ffi/device";

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

export function toBfloat16(values: Float32Array): Uint16Array {
  return Uint16Array.from(values, (value) => {
    float[0] = value;
    const word = bits[0] as number;
    if ((word & 0x7fffffff) > 0x7f800000) return (word >>> 16) | 0x40;
    return (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  });
}

export function fromBfloat16(values: Uint16Array): Float32Array {
  return Float32Array.from(values, (value) => {
    bits[0] = value << 16;
    return float[0] as number;
  });
}

/** The values as a buffer of this dtype holds them. */
export function rounded(values: Float32Array, dtype: Dtype): Float32Array {
  return dtype === "bfloat16" ? fromBfloat16(toBfloat16(values)) : values;
}
