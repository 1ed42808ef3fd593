// Weighted sums of rows: sums[r] += p[r][i] * v[i] over keys i in ascending order, by fma, several rows and
// vectors at once.
#pragma once
#include "vec16.h"

namespace granary::GRANARY_ISA {

#ifdef __AVX512F__
constexpr int kValueRows = 4;
constexpr int kValueVectors = 4;
#else
constexpr int kValueRows = 2;
constexpr int kValueVectors = 2;
#endif

// Keys of one call: weights of key i stand at offsets[i] of every p row, values at v[i]. Where `ahead` is
// there, its rows, of elements of so many bytes, are asked for on the way.
struct ValueKeys {
  const int32_t* offsets;
  const float* const* v;
  const char* const* ahead;  // or null
  int64_t aheadElementBytes;
  int count;
};

// D vectors from element `column` on, for R rows of sums that lie `stride` apart.
template <int R, int D, bool asksAhead>
static void valueTile(float* sums, int64_t stride, const float* const* p, const ValueKeys& keys,
                      int64_t column) {
  Vec16 s[R * D];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int d = 0; d < D; ++d) s[r * D + d] = load(sums + r * stride + column + d * kLanes);
  }
  for (int i = 0; i < keys.count; ++i) {
    const float* v = keys.v[i] + column;
    const int64_t offset = keys.offsets[i];
    if constexpr (asksAhead) {
      const char* ahead = keys.ahead[i] + column * keys.aheadElementBytes;
      for (int d = 0; d < D; ++d) _mm_prefetch(ahead + d * kLanes * keys.aheadElementBytes, _MM_HINT_T1);
    }
    Vec16 value[D];
#pragma GCC unroll 16
    for (int d = 0; d < D; ++d) value[d] = inRegister(load(v + d * kLanes));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec16 weight = inRegister(broadcast(p[r][offset]));
#pragma GCC unroll 16
      for (int d = 0; d < D; ++d) s[r * D + d] = fma(weight, value[d], s[r * D + d]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int d = 0; d < D; ++d) store(sums + r * stride + column + d * kLanes, s[r * D + d]);
  }
}

template <int R, bool asksAhead>
static void valueRows(float* sums, int64_t stride, const float* const* p, const ValueKeys& keys) {
  int64_t column = 0;
  for (; column + kValueVectors * kLanes <= stride; column += kValueVectors * kLanes) {
    valueTile<R, kValueVectors, asksAhead>(sums, stride, p, keys, column);
  }
  for (; column < stride; column += kLanes) valueTile<R, 1, asksAhead>(sums, stride, p, keys, column);
}

template <bool asksAhead>
static void valueRowsOf(int rows, float* sums, int64_t stride, const float* const* p, const ValueKeys& keys) {
  if constexpr (kValueRows == 4) {
    if (rows == 4) return valueRows<4, asksAhead>(sums, stride, p, keys);
    if (rows == 3) return valueRows<3, asksAhead>(sums, stride, p, keys);
  }
  if (rows == 2) return valueRows<2, asksAhead>(sums, stride, p, keys);
  valueRows<1, asksAhead>(sums, stride, p, keys);
}

// The whole width of `rows` <= kValueRows rows; `stride` is a multiple of sixteen.
static inline void accumulateValues(int rows, float* sums, int64_t stride, const float* const* p,
                                    const ValueKeys& keys) {
  if (keys.ahead != nullptr) valueRowsOf<true>(rows, sums, stride, p, keys);
  else valueRowsOf<false>(rows, sums, stride, p, keys);
}

}  // namespace granary::GRANARY_ISA
