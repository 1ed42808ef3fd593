// exp, tanh, silu and gelu over sixteen lanes: the only ones that the kernels use, so that two ops never
// disagree.
#pragma once
#include "vec16.h"

namespace granary::GRANARY_ISA {

// Within 1.02 ulp of e^x for every float, subnormal results included; 0 below -104, +inf above 88.73, NaN for
// NaN. x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 is subtracted in two parts, e^r is a polynomial, and 2^n is
// applied in two halves, the first of them exact, so that a subnormal result is rounded once. min and max
// hand on a NaN in x because their second operand wins.
GRANARY_INLINE Vec16 exp(Vec16 x) {
  const Vec16 clamped = max(broadcast(-105.0f), min(broadcast(89.0f), x));
  const Vec16 n = roundToEven(mul(clamped, broadcast(1.44269504088896341f)));
  Vec16 r = fma(n, broadcast(-0.693359375f), clamped);
  r = fma(n, broadcast(2.12194440e-4f), r);
  Vec16 p = broadcast(1.9875691500e-4f);
  p = fma(p, r, broadcast(1.3981999507e-3f));
  p = fma(p, r, broadcast(8.3334519073e-3f));
  p = fma(p, r, broadcast(4.1665795894e-2f));
  p = fma(p, r, broadcast(1.6666665459e-1f));
  p = fma(p, r, broadcast(5.0000001201e-1f));
  const Vec16 y = add(fma(p, mul(r, r), r), broadcast(1.0f));
  const Vec16 half = roundToEven(mul(n, broadcast(0.5f)));
  return mul(mul(y, powerOfTwo(half)), powerOfTwo(sub(n, half)));
}

// Within 1.4 ulp.
GRANARY_INLINE Vec16 tanh(Vec16 x) {
  const Vec16 a = abs(x);
  const Vec16 square = mul(x, x);
  Vec16 p = broadcast(-5.70498872745e-3f);
  p = fma(p, square, broadcast(2.06390887954e-2f));
  p = fma(p, square, broadcast(-5.37397155531e-2f));
  p = fma(p, square, broadcast(1.33314422036e-1f));
  p = fma(p, square, broadcast(-3.33332819422e-1f));
  const Vec16 small = fma(mul(p, square), x, x);
  const Vec16 one = broadcast(1.0f);
  const Vec16 large = sub(one, div(broadcast(2.0f), add(exp(add(a, a)), one)));
  return selectLess(a, broadcast(0.625f), small, copySign(large, x));
}

// -0 instead of a value smaller than 5e-38 below -88.8, where the exponential overflows.
GRANARY_INLINE Vec16 silu(Vec16 x) { return div(x, add(broadcast(1.0f), exp(sub(zero(), x)))); }

GRANARY_INLINE Vec16 geluTanh(Vec16 x) {
  const Vec16 cube = mul(mul(x, x), x);
  const Vec16 inner = mul(broadcast(0.797884560802865356f), fma(broadcast(0.044715f), cube, x));
  return mul(mul(broadcast(0.5f), x), add(broadcast(1.0f), tanh(inner)));
}

GRANARY_INLINE float exp(float x) {
  float lanes[kLanes];
  store(lanes, exp(broadcast(x)));
  return lanes[0];
}

}  // namespace granary::GRANARY_ISA
