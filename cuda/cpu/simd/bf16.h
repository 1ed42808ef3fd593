// bfloat16 as a 16-bit integer: exact widening, rounding to nearest even, NaN kept a NaN.
#pragma once
#include "vec16.h"

namespace granary::GRANARY_ISA {

GRANARY_INLINE float widen(uint16_t a) {
  const uint32_t bits = static_cast<uint32_t>(a) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
GRANARY_INLINE float widen(float a) { return a; }

GRANARY_INLINE uint16_t roundToBf16(float a) {
  uint32_t bits;
  memcpy(&bits, &a, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Stores f32 values rounded to the type of the destination.
GRANARY_INLINE void storeRounded(float* out, const float* in, int64_t count) {
  memcpy(out, in, sizeof(float) * static_cast<size_t>(count));
}
GRANARY_INLINE void storeRounded(uint16_t* out, const float* in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = roundToBf16(in[i]);
}

}  // namespace granary::GRANARY_ISA
