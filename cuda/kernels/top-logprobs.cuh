// The k best log-probabilities of each row in descending order, ties to the lower id; and value and rank of a
// chosen token.
//   logprobs                   [rows, columns] with a stride  f32
//   ids, values                [rows, k]                      int32, f32
//   chosen                     [rows]                         int32; a negative one is skipped
//   chosenValues, chosenRanks  [rows]                         f32, int32: 1 + the number of strictly greater
//   entries
// One block a row and one pass over it (from L2) for each of the k: k is at most 20 and the op is rare.
#pragma once
#include "ordered-key.cuh"

constexpr int kTopLogprobsThreads = 1024;

struct TopLogprobsParams {
  const float* logprobs;
  const int* chosen;
  int* ids;
  float* values;
  float* chosenValues;
  int* chosenRanks;
  long long logprobsStride;
  int columns, k;
};

__device__ __forceinline__ void rankChosen(const TopLogprobsParams& p, const float* row) {
  __shared__ int numGreater;
  const int chosen = p.chosen[blockIdx.x];
  if (chosen < 0 || chosen >= p.columns) return;
  if (threadIdx.x == 0) numGreater = 0;
  __syncthreads();
  const float value = row[chosen];
  int count = 0;
  for (int i = threadIdx.x; i < p.columns; i += kTopLogprobsThreads) count += row[i] > value;
  count = __reduce_add_sync(kFullWarp, count);
  if (threadIdx.x % kWarpSize == 0) atomicAdd(&numGreater, count);
  __syncthreads();
  if (threadIdx.x != 0) return;
  p.chosenValues[blockIdx.x] = value;
  p.chosenRanks[blockIdx.x] = numGreater + 1;
}

__global__ void __launch_bounds__(kTopLogprobsThreads)
    topLogprobsKernel(const __grid_constant__ TopLogprobsParams p) {
  __shared__ OrderedKey shared[kTopLogprobsThreads / kWarpSize];
  const float* row = p.logprobs + blockIdx.x * p.logprobsStride;
  OrderedKey previous = ~0ull;
  for (int rank = 0; rank < p.k; ++rank) {
    OrderedKey best = 0;
    for (int i = threadIdx.x; i < p.columns; i += kTopLogprobsThreads) {
      const OrderedKey key = orderedKey(row[i], i);
      if (key < previous && key > best) best = key;
    }
    previous = blockMaxKey<kTopLogprobsThreads>(best, shared);
    if (threadIdx.x == 0) {
      const long long at = static_cast<long long>(blockIdx.x) * p.k + rank;
      p.ids[at] = idOf(previous);
      p.values[at] = row[idOf(previous)];
    }
  }
  if (p.chosen != nullptr) rankChosen(p, row);
}
