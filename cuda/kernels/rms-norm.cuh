// Residual add and RMS norm in one pass: residual += x (stored, if there is one), then
// out = y * rsqrt(mean(y^2) + eps) * (weight + weightOffset) with y = residual or x.
//   x, residual, out  [rows, columns] with strides  f32 or bf16; out may be x
//   weight            [columns]                     f32 or bf16
// One block a row; y stays in shared memory between the sum and the product, as the residual's type has
// rounded it. Bound: HBM, bytes = rows * columns * element * (2 or 4 with a residual).
#pragma once
#include "numeric.cuh"

constexpr int kRmsNormThreads = 256;
constexpr int kRmsNormAhead = 2;  // pieces of the weight a thread has at hand before its row is there

template <typename T, typename TWeight>
struct RmsNormParams {
  const T* x;
  T* residual;
  const TWeight* weight;
  T* out;
  long long xStride, residualStride, outStride;
  int columns;
  float eps, weightOffset;
};

// A thread's piece of the normalised row.
template <typename T, typename TWeight, int kWidth>
__device__ __forceinline__ void storeNormalised(const RmsNormParams<T, TWeight>& p, T* out, const float* row,
                                                const float (&weights)[kWidth], float scale) {
  float values[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values[i] = row[i] * scale * (weights[i] + p.weightOffset);
  storeFloats<T, kWidth>(out, values);
}

// Dynamic shared memory: columns floats.
template <typename T, typename TWeight, int kWidth>
__global__ void rmsNormKernel(const __grid_constant__ RmsNormParams<T, TWeight> p) {
  extern __shared__ float row[];
  __shared__ float partial[kRmsNormThreads / kWarpSize];
  releaseNext();
  constexpr int kStride = kRmsNormThreads * kWidth;
  const int first = threadIdx.x * kWidth;
  // Constant, so it may come before the previous kernel has ended.
  float ahead[kRmsNormAhead][kWidth];
#pragma unroll
  for (int i = 0; i < kRmsNormAhead; ++i) {
    const int column = first + i * kStride;
    if (column < p.columns) loadFloats<TWeight, kWidth>(p.weight + column, ahead[i]);
  }
  waitForPrevious();
  const T* x = p.x + blockIdx.x * p.xStride;
  T* residual = p.residual + blockIdx.x * p.residualStride;
  T* out = p.out + blockIdx.x * p.outStride;

  float squares = 0.0f;
  for (int column = first; column < p.columns; column += kStride) {
    float values[kWidth];
    loadFloats<T, kWidth>(x + column, values);
    if (p.residual != nullptr) {
      float base[kWidth];
      loadFloats<T, kWidth>(residual + column, base);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values[i] = toFloat(fromFloat<T>(values[i] + base[i]));
      storeFloats<T, kWidth>(residual + column, values);
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      row[column + i] = values[i];
      squares += values[i] * values[i];
    }
  }

  const float mean = blockSum<kRmsNormThreads>(squares, partial) / static_cast<float>(p.columns);
  const float scale = rsqrtf(mean + p.eps);
#pragma unroll
  for (int i = 0; i < kRmsNormAhead; ++i) {
    const int column = first + i * kStride;
    if (column < p.columns) storeNormalised(p, out + column, row + column, ahead[i], scale);
  }
  for (int column = first + kRmsNormAhead * kStride; column < p.columns; column += kStride) {
    float weights[kWidth];
    loadFloats<TWeight, kWidth>(p.weight + column, weights);
    storeNormalised(p, out + column, row + column, weights, scale);
  }
}
