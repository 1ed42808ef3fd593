// Gated linear unit: out = activation(gate) * up.
//   gateUp  [rows, gate columns | up columns] with a stride  f32 or bf16
//   out     [rows, columns] with a stride                    f32 or bf16
// kWidth neighbouring columns a thread; grid (rows, slices of the columns). Bound: HBM, bytes = 3 * rows *
// columns * element.
#pragma once
#include "activation.cuh"
#include "numeric.cuh"

constexpr int kGluThreads = 256;

template <typename T>
struct GluParams {
  const T* gateUp;
  T* out;
  long long gateUpStride, outStride;
  int columns;
  int activation;
};

template <typename T, int kWidth>
__global__ void gluKernel(const __grid_constant__ GluParams<T> p) {
  releaseNext();
  waitForPrevious();
  const int column = (blockIdx.y * kGluThreads + threadIdx.x) * kWidth;
  if (column >= p.columns) return;
  const T* gateUp = p.gateUp + blockIdx.x * p.gateUpStride + column;
  float gate[kWidth], up[kWidth];
  loadFloats<T, kWidth>(gateUp, gate);
  loadFloats<T, kWidth>(gateUp + p.columns, up);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) up[i] *= activate(gate[i], p.activation);
  storeFloats<T, kWidth>(p.out + blockIdx.x * p.outStride + column, up);
}
