// Filling prepared weights (plain row-major here): conversion of raw rows, and synthetic values.
// Elementwise over [rows, columns], grid (slices of the columns, rows up to the grid's limit). Load time
// only, not tuned.
#pragma once
#include "numeric.cuh"

constexpr int kWeightThreads = 256;

template <typename T, typename TSource>
struct ConvertRowsParams {
  const TSource* source;  // [rows, columns], dense
  T* out;                 // [rows, columns], dense
  long long count;
};

template <typename T, typename TSource>
__global__ void convertRowsKernel(const __grid_constant__ ConvertRowsParams<T, TSource> p) {
  const long long step = static_cast<long long>(gridDim.x) * kWeightThreads;
  for (long long i = static_cast<long long>(blockIdx.x) * kWeightThreads + threadIdx.x; i < p.count;
       i += step) {
    p.out[i] = fromFloat<T>(toFloat(p.source[i]));
  }
}

template <typename T>
struct SynthesizeParams {
  T* out;                                      // [rows, columns], dense
  long long firstElement, sourceStride, rows;  // of the tensor that the values are defined over
  int columns;
  double amplitude, offset;
  unsigned a, b;
};

__device__ __forceinline__ unsigned mixBits(unsigned x) {
  x = (x ^ x >> 16) * 0x21f0aaadu;
  x = (x ^ x >> 15) * 0x735a2d97u;
  return x ^ x >> 15;
}

// The products and sums are kept apart (no FMA) so that every library rounds alike.
__device__ __forceinline__ float syntheticValue(unsigned i, double amplitude, double offset, unsigned a,
                                                unsigned b) {
  const unsigned h = mixBits(mixBits(i ^ a) + b);
  const double x = (static_cast<double>(h >> 8) + 0.5) / 8388608.0 - 1.0;
  const double value = __dadd_rn(offset, __dmul_rn(amplitude, x));
  return toFloat(fromFloat<Bf16>(static_cast<float>(value)));
}

template <typename T>
__global__ void synthesizeKernel(const __grid_constant__ SynthesizeParams<T> p) {
  const int column = blockIdx.x * kWeightThreads + threadIdx.x;
  if (column >= p.columns) return;
  for (long long row = blockIdx.y; row < p.rows; row += gridDim.y) {
    const auto element = static_cast<unsigned>(p.firstElement + row * p.sourceStride + column);
    p.out[row * p.columns + column] = fromFloat<T>(syntheticValue(element, p.amplitude, p.offset, p.a, p.b));
  }
}
