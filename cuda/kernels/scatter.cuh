// Ordered scatter: table[indices[i]] = values[i]; of several entries with one index the last wins.
//   table    [?]      int32
//   indices  [count]  int32
//   values   [count]  int32
// One warp takes the entries in order, 32 at a time: among those the highest lane of an index writes, and
// __syncwarp orders one round's writes before the next. Eight rounds are loaded at once to hide the latency.
// Table changes of a step: a few hundred.
#pragma once
#include "numeric.cuh"

constexpr int kScatterRounds = 8;

struct ScatterParams {
  int* table;
  const int* indices;
  const int* values;
  int count;
};

__global__ void scatterKernel(const __grid_constant__ ScatterParams p) {
  const int lane = threadIdx.x;
  for (int base = 0; base < p.count; base += kScatterRounds * kWarpSize) {
    int indices[kScatterRounds], values[kScatterRounds];
#pragma unroll
    for (int round = 0; round < kScatterRounds; ++round) {
      const int i = base + round * kWarpSize + lane;
      indices[round] = i < p.count ? p.indices[i] : -1;
      values[round] = i < p.count ? p.values[i] : 0;
    }
#pragma unroll
    for (int round = 0; round < kScatterRounds; ++round) {
      const unsigned peers = __match_any_sync(kFullWarp, indices[round]);
      const bool isLast = 31 - __clz(peers) == lane;
      if (isLast && indices[round] >= 0) p.table[indices[round]] = values[round];
      __syncwarp();
    }
  }
}
