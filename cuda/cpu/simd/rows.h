// Walks over one row in steps of sixteen: lane l sees elements l, l + 16, l + 32 ... in ascending order, and
// the tail is filled with zeros (or what the caller says). The row reductions of every op are these.
#pragma once
#include "bf16.h"
#include "reduce.h"

namespace granary::GRANARY_ISA {

// out[i] = body(in[i]) over a row; in may be out.
template <typename T, typename Body>
GRANARY_INLINE void mapRow(float* out, const T* in, int64_t count, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, body(load(in + i)));
  if (i < count) {
    const int tail = static_cast<int>(count - i);
    storeTail(out + i, body(loadTail(in + i, tail)), tail);
  }
}

// out[i] = body(a[i], b[i]).
template <typename A, typename B, typename Body>
GRANARY_INLINE void mapRows(float* out, const A* a, const B* b, int64_t count, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(out + i, body(load(a + i), load(b + i)));
  if (i < count) {
    const int tail = static_cast<int>(count - i);
    storeTail(out + i, body(loadTail(a + i, tail), loadTail(b + i, tail)), tail);
  }
}

GRANARY_INLINE float sumOfSquares(const float* in, int64_t count) {
  Vec16 sum = zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec16 a = load(in + i);
    sum = fma(a, a, sum);
  }
  if (i < count) {
    const Vec16 a = loadTail(in + i, static_cast<int>(count - i));
    sum = fma(a, a, sum);
  }
  return reduceSum(sum);
}

// Element by element, sixteen lanes of `fill` behind the end.
GRANARY_INLINE Vec16 loadFilled(const float* p, int count, float fill) {
  float lanes[kLanes];
  for (int l = 0; l < kLanes; ++l) lanes[l] = l < count ? p[l] : fill;
  return load(lanes);
}

// The largest element; unspecified when one is a NaN.
GRANARY_INLINE float maxOf(const float* in, int64_t count) {
  const float lowest = -__builtin_inff();
  Vec16 best = broadcast(lowest);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) best = max(load(in + i), best);
  if (i < count) best = max(loadFilled(in + i, static_cast<int>(count - i), lowest), best);
  return reduceMax(best);
}

// out[i] = e^(in[i] - shift), and their sum. Elements behind the end count as e^-inf, an exact 0.
GRANARY_INLINE float expRow(float* out, const float* in, int64_t count, float shift) {
  const Vec16 subtrahend = broadcast(shift);
  Vec16 sum = zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec16 e = exp(sub(load(in + i), subtrahend));
    store(out + i, e);
    sum = add(sum, e);
  }
  if (i < count) {
    const int tail = static_cast<int>(count - i);
    const Vec16 e = exp(sub(loadFilled(in + i, tail, -__builtin_inff()), subtrahend));
    storeTail(out + i, e, tail);
    sum = add(sum, e);
  }
  return reduceSum(sum);
}

// The sum that expRow returns, without storing the terms.
GRANARY_INLINE float sumOfExp(const float* in, int64_t count, float shift) {
  const Vec16 subtrahend = broadcast(shift);
  Vec16 sum = zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum = add(sum, exp(sub(load(in + i), subtrahend)));
  if (i < count) {
    sum = add(sum, exp(sub(loadFilled(in + i, static_cast<int>(count - i), -__builtin_inff()), subtrahend)));
  }
  return reduceSum(sum);
}

GRANARY_INLINE float sumOf(const float* in, int64_t count) {
  Vec16 sum = zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum = add(sum, load(in + i));
  if (i < count) sum = add(sum, loadTail(in + i, static_cast<int>(count - i)));
  return reduceSum(sum);
}

GRANARY_INLINE bool holdsNan(const float* in, int64_t count) {
  uint32_t found = 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) found |= nanMask(load(in + i));
  if (i < count) found |= nanMask(loadTail(in + i, static_cast<int>(count - i)));
  return found != 0;
}

// y * 1 / sqrt(mean(y^2) + eps), without the weight: the factor.
GRANARY_INLINE float rmsFactor(const float* in, int64_t count, float eps) {
  const float mean = sumOfSquares(in, count) / static_cast<float>(count);
  return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
}

}  // namespace granary::GRANARY_ISA
