// Sixteen f32 lanes: one AVX-512 register or two AVX2 registers, with the same bits out of either.
//
// Every file that includes this is compiled once an instruction set; GRANARY_ISA names the namespace, so that
// no symbol of one set can be linked into the other. Only operations that IEEE 754 defines exactly are
// offered (no approximate reciprocals), and nothing here is contracted: an fma happens where fma() is written
// and nowhere else.
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define GRANARY_INLINE static inline __attribute__((always_inline))
#define GRANARY_INLINE_MEMBER inline __attribute__((always_inline))

namespace granary::GRANARY_ISA {

constexpr int kLanes = 16;

#ifdef __AVX512F__

struct Vec16 {
  __m512 v;
};

GRANARY_INLINE Vec16 zero() { return {_mm512_setzero_ps()}; }
GRANARY_INLINE Vec16 broadcast(float a) { return {_mm512_set1_ps(a)}; }
GRANARY_INLINE Vec16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
GRANARY_INLINE void store(float* p, Vec16 a) { _mm512_storeu_ps(p, a.v); }
GRANARY_INLINE Vec16 load(const uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
GRANARY_INLINE Vec16 add(Vec16 a, Vec16 b) { return {_mm512_add_ps(a.v, b.v)}; }
GRANARY_INLINE Vec16 sub(Vec16 a, Vec16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
GRANARY_INLINE Vec16 mul(Vec16 a, Vec16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
GRANARY_INLINE Vec16 div(Vec16 a, Vec16 b) { return {_mm512_div_ps(a.v, b.v)}; }
GRANARY_INLINE Vec16 fma(Vec16 a, Vec16 b, Vec16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
// b where either is NaN, as the instruction defines it on both sets.
GRANARY_INLINE Vec16 max(Vec16 a, Vec16 b) { return {_mm512_max_ps(a.v, b.v)}; }
GRANARY_INLINE Vec16 min(Vec16 a, Vec16 b) { return {_mm512_min_ps(a.v, b.v)}; }
GRANARY_INLINE Vec16 abs(Vec16 a) { return {_mm512_abs_ps(a.v)}; }
// The magnitude of a with the sign of b.
GRANARY_INLINE Vec16 copySign(Vec16 a, Vec16 b) {
  const __m512i sign = _mm512_set1_epi32(INT32_MIN);
  return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_andnot_si512(sign, _mm512_castps_si512(a.v)),
                                              _mm512_and_si512(sign, _mm512_castps_si512(b.v))))};
}
GRANARY_INLINE Vec16 roundToEven(Vec16 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
// 2^n for an integral n in [-126, 127].
GRANARY_INLINE Vec16 powerOfTwo(Vec16 n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
}
// Lane by lane: a < b ? ifTrue : ifFalse; false for a NaN.
GRANARY_INLINE Vec16 selectLess(Vec16 a, Vec16 b, Vec16 ifTrue, Vec16 ifFalse) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), ifFalse.v, ifTrue.v)};
}
// Bit l is set where a[l] > b[l].
GRANARY_INLINE uint32_t greaterMask(Vec16 a, Vec16 b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ); }
GRANARY_INLINE uint32_t nanMask(Vec16 a) { return _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q); }
// Lanes l and l + 8 added: the first level of the reduction tree.
GRANARY_INLINE __m256 foldHalves(Vec16 a) {
  return _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
}
// The value in a register from here on: a compiler that folds one load into several fmas would read memory
// for each.
GRANARY_INLINE Vec16 inRegister(Vec16 a) {
  asm("" : "+v"(a.v));
  return a;
}
GRANARY_INLINE Vec16 loadTail(const float* p, int count) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p)};
}
GRANARY_INLINE void storeTail(float* p, Vec16 a, int count) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), a.v);
}

#else

struct Vec16 {
  __m256 lo, hi;
};

GRANARY_INLINE Vec16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
GRANARY_INLINE Vec16 broadcast(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
GRANARY_INLINE Vec16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
GRANARY_INLINE void store(float* p, Vec16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
GRANARY_INLINE __m256 widen8(const uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
GRANARY_INLINE Vec16 load(const uint16_t* p) { return {widen8(p), widen8(p + 8)}; }
GRANARY_INLINE Vec16 add(Vec16 a, Vec16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
GRANARY_INLINE Vec16 sub(Vec16 a, Vec16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
GRANARY_INLINE Vec16 mul(Vec16 a, Vec16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
GRANARY_INLINE Vec16 div(Vec16 a, Vec16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
GRANARY_INLINE Vec16 fma(Vec16 a, Vec16 b, Vec16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
GRANARY_INLINE Vec16 max(Vec16 a, Vec16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
GRANARY_INLINE Vec16 min(Vec16 a, Vec16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
GRANARY_INLINE Vec16 abs(Vec16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
GRANARY_INLINE Vec16 copySign(Vec16 a, Vec16 b) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(sign, a.lo), _mm256_and_ps(sign, b.lo)),
          _mm256_or_ps(_mm256_andnot_ps(sign, a.hi), _mm256_and_ps(sign, b.hi))};
}
GRANARY_INLINE Vec16 roundToEven(Vec16 a) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.lo, mode), _mm256_round_ps(a.hi, mode)};
}
GRANARY_INLINE __m256 powerOfTwo8(__m256 n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
GRANARY_INLINE Vec16 powerOfTwo(Vec16 n) { return {powerOfTwo8(n.lo), powerOfTwo8(n.hi)}; }
GRANARY_INLINE Vec16 selectLess(Vec16 a, Vec16 b, Vec16 ifTrue, Vec16 ifFalse) {
  return {_mm256_blendv_ps(ifFalse.lo, ifTrue.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_blendv_ps(ifFalse.hi, ifTrue.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
GRANARY_INLINE uint32_t greaterMask(Vec16 a, Vec16 b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ))) |
         static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))) << 8;
}
GRANARY_INLINE uint32_t nanMask(Vec16 a) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q))) |
         static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q))) << 8;
}
GRANARY_INLINE __m256 foldHalves(Vec16 a) { return _mm256_add_ps(a.lo, a.hi); }
GRANARY_INLINE Vec16 inRegister(Vec16 a) {
  asm("" : "+x"(a.lo), "+x"(a.hi));
  return a;
}
GRANARY_INLINE Vec16 loadTail(const float* p, int count) {
  alignas(32) float lanes[kLanes] = {};
  memcpy(lanes, p, sizeof(float) * static_cast<size_t>(count));
  return load(lanes);
}
GRANARY_INLINE void storeTail(float* p, Vec16 a, int count) {
  alignas(32) float lanes[kLanes];
  store(lanes, a);
  memcpy(p, lanes, sizeof(float) * static_cast<size_t>(count));
}

#endif

GRANARY_INLINE Vec16 loadTail(const uint16_t* p, int count) {
  alignas(32) uint16_t lanes[kLanes] = {};
  memcpy(lanes, p, sizeof(uint16_t) * static_cast<size_t>(count));
  return load(lanes);
}

}  // namespace granary::GRANARY_ISA
