// The one reduction tree: lanes l and l + 8, then l and l + 4, l + 2, l + 1. Alone or eight vectors at a
// time, the same bits.
#pragma once
#include "vec16.h"

namespace granary::GRANARY_ISA {

GRANARY_INLINE float reduceSum(Vec16 a) {
  const __m256 eight = foldHalves(a);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

GRANARY_INLINE float reduceMax(Vec16 a) {
  float lanes[kLanes];
  store(lanes, a);
  float best = lanes[0];
  for (int l = 1; l < kLanes; ++l) best = lanes[l] > best ? lanes[l] : best;
  return best;
}

// Lane pairs (l, l + 4) of a and of b: a's four sums in the low half, b's in the high half.
GRANARY_INLINE __m256 foldQuarters(__m256 a, __m256 b) {
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

// Element i of the result is reduceSum(in[i]), for kCount <= 8; the others are 0.
template <int kCount>
GRANARY_INLINE __m256 reduceSums(const Vec16* in) {
  __m256 eight[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) eight[i] = i < kCount ? foldHalves(in[i]) : _mm256_setzero_ps();
  const __m256 q0 = foldQuarters(eight[0], eight[4]);
  const __m256 q1 = foldQuarters(eight[1], eight[5]);
  const __m256 q2 = foldQuarters(eight[2], eight[6]);
  const __m256 q3 = foldQuarters(eight[3], eight[7]);
  const __m256 p0 = _mm256_add_ps(_mm256_shuffle_ps(q0, q1, 0x44), _mm256_shuffle_ps(q0, q1, 0xee));
  const __m256 p1 = _mm256_add_ps(_mm256_shuffle_ps(q2, q3, 0x44), _mm256_shuffle_ps(q2, q3, 0xee));
  return _mm256_add_ps(_mm256_shuffle_ps(p0, p1, 0x88), _mm256_shuffle_ps(p0, p1, 0xdd));
}

// Lanes below `count` of eight, for masked loads and stores.
GRANARY_INLINE __m256i firstLanes(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace granary::GRANARY_ISA
