// What the parts of the sampler share: parameters, weights as integers, block sums.
#pragma once
#include "ordered-key.cuh"

constexpr int kSampleThreads = 1024;
constexpr int kSampleWarps = kSampleThreads / kWarpSize;
static_assert(kSampleWarps == kWarpSize, "one warp holds a value of every warp");

// GranarySamplingParams.
struct SlotParams {
  float temperature, topP, minP;
  int topK;
  float repetitionPenalty, presencePenalty, frequencyPenalty;
  unsigned seedLow, seedHigh;
  int choice, numBiases, numSuppressed, suppressBelow, usesCounts, reserved0, reserved1;
};

struct SampleParams {
  float* logits;
  const int* slots;
  const int* positions;
  const SlotParams* params;
  unsigned* counts;
  const int* biasIds;
  const float* biasValues;
  const int* suppressedIds;
  const unsigned* mask;
  int* out;
  int* lastTokens;
  long long logitsStride;
  int vocab, biasCapacity, suppressedCapacity, draw;
};

// Weights are summed as integers, in units of 2^-40 of the largest: an integer sum does not depend on its
// order, so neither does the token. 2^18 tokens of weight 1 stay below 2^63.
using Mass = unsigned long long;

__device__ __forceinline__ Mass massOf(float scaled) {
  return __float2ull_rn(expf(scaled) * 1099511627776.0f);
}

__device__ __forceinline__ Mass warpMassSum(Mass mass) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    mass += __shfl_xor_sync(kFullWarp, mass, distance);
  }
  return mass;
}

// Sum over the block, known to every thread; `shared` is free again on return.
__device__ __forceinline__ Mass blockMassSum(Mass mass, Mass (&shared)[kSampleWarps]) {
  mass = warpMassSum(mass);
  if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = mass;
  __syncthreads();
  const Mass total = warpMassSum(shared[threadIdx.x % kSampleWarps]);
  __syncthreads();
  return total;
}
