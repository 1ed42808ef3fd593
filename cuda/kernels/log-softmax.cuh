// Log-softmax of each row; a NaN in a row reaches all of it through the sum.
//   logits, out  [rows, columns] with strides  f32; out may be logits
// One block a row, three passes of which two hit the L2 cache. Bound: HBM, bytes = 2 * rows * columns * 4.
#pragma once
#include "numeric.cuh"

constexpr int kLogSoftmaxThreads = 1024;

struct LogSoftmaxParams {
  const float* logits;
  float* out;
  long long logitsStride, outStride;
  int columns;
};

__global__ void __launch_bounds__(kLogSoftmaxThreads)
    logSoftmaxKernel(const __grid_constant__ LogSoftmaxParams p) {
  __shared__ float partial[kLogSoftmaxThreads / kWarpSize];
  const float* logits = p.logits + blockIdx.x * p.logitsStride;
  float* out = p.out + blockIdx.x * p.outStride;
  float largest = -kInfinity;
  for (int i = threadIdx.x; i < p.columns; i += kLogSoftmaxThreads) largest = fmaxf(largest, logits[i]);
  largest = blockMax<kLogSoftmaxThreads>(largest, partial);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < p.columns; i += kLogSoftmaxThreads) sum += expf(logits[i] - largest);
  const float logSum = logf(blockSum<kLogSoftmaxThreads>(sum, partial));
  for (int i = threadIdx.x; i < p.columns; i += kLogSoftmaxThreads) out[i] = logits[i] - largest - logSum;
}
