// Rotary angles: out[r][i] = {cos, sin}(positions[r] * inverseFrequencies[i]) * scale, the angle in float64.
//   positions           [rows]            int32
//   inverseFrequencies  [pairs]           float64
//   out                 [rows, pairs, 2]  f32
// One thread a pair. Computed once a step for every layer, so nothing here is tuned.
#pragma once
#include "numeric.cuh"

constexpr int kRopeTableThreads = 128;

struct RopeTableParams {
  const int* positions;
  const double* inverseFrequencies;
  float* out;
  int rows, pairs;
  float scale;
};

__global__ void ropeTableKernel(const __grid_constant__ RopeTableParams p) {
  releaseNext();
  waitForPrevious();
  const long long index = static_cast<long long>(blockIdx.x) * kRopeTableThreads + threadIdx.x;
  const int row = static_cast<int>(index / p.pairs), pair = static_cast<int>(index % p.pairs);
  if (row >= p.rows) return;
  double sine, cosine;
  sincos(static_cast<double>(p.positions[row]) * p.inverseFrequencies[pair], &sine, &cosine);
  p.out[2 * index] = static_cast<float>(cosine) * p.scale;
  p.out[2 * index + 1] = static_cast<float>(sine) * p.scale;
}
