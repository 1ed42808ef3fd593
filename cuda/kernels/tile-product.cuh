// A 64 x 64 tile of x * weight^T on the arithmetic units: the product of every pair of element types that
// cuBLASLt does not take, and of grouped rows. f32 accumulation in ascending k, 16 products at a time before
// they join the sum. 256 threads, 4 x 4 results each. Bound: FFMA.
#pragma once
#include "numeric.cuh"

constexpr int kTileSide = 64;
constexpr int kTileDepth = 16;
constexpr int kTileThreads = 256;
constexpr int kTileResults = 4;  // per thread and direction
constexpr int kTileRowsPerThread = kTileSide * kTileDepth / kTileThreads;

struct TileShared {
  // One padding word keeps the transposing stores off each other's banks and the rows 16-byte aligned.
  float x[kTileDepth][kTileSide + 4];
  float weight[kTileDepth][kTileSide + 4];
};

// Row of a tile that this thread loads as its i-th.
__device__ __forceinline__ int tileLoadRow(int i) {
  return threadIdx.x / kTileDepth + i * (kTileThreads / kTileDepth);
}
__device__ __forceinline__ int tileFirstRow() {
  return threadIdx.x / (kTileSide / kTileResults) * kTileResults;
}
__device__ __forceinline__ int tileFirstColumn() {
  return threadIdx.x % (kTileSide / kTileResults) * kTileResults;
}

template <typename T>
__device__ __forceinline__ void stageTile(float (&tile)[kTileDepth][kTileSide + 4],
                                          const T* const (&rows)[kTileRowsPerThread], int base, int depth) {
  const int k = threadIdx.x % kTileDepth;
#pragma unroll
  for (int i = 0; i < kTileRowsPerThread; ++i) {
    const bool isThere = rows[i] != nullptr && base + k < depth;
    tile[k][tileLoadRow(i)] = isThere ? toFloat(rows[i][base + k]) : 0.0f;
  }
}

// results[i][j] = dot(x row tileFirstRow() + i, weight row tileFirstColumn() + j). xRows and weightRows are
// the rows that this thread loads; null is a row of zeros. Every thread of the block has to call it.
template <typename T, typename TWeight>
__device__ __forceinline__ void multiplyTile(TileShared& shared, const T* const (&xRows)[kTileRowsPerThread],
                                             const TWeight* const (&weightRows)[kTileRowsPerThread],
                                             int depth, float (&results)[kTileResults][kTileResults]) {
  const int row = tileFirstRow(), column = tileFirstColumn();
#pragma unroll
  for (int i = 0; i < kTileResults * kTileResults; ++i) results[i / kTileResults][i % kTileResults] = 0.0f;
  for (int base = 0; base < depth; base += kTileDepth) {
    stageTile(shared.x, xRows, base, depth);
    stageTile(shared.weight, weightRows, base, depth);
    __syncthreads();
    float step[kTileResults][kTileResults] = {};
#pragma unroll
    for (int k = 0; k < kTileDepth; ++k) {
      float x[kTileResults], weight[kTileResults];
      loadFloats<float, kTileResults>(&shared.x[k][row], x);
      loadFloats<float, kTileResults>(&shared.weight[k][column], weight);
#pragma unroll
      for (int i = 0; i < kTileResults; ++i) {
#pragma unroll
        for (int j = 0; j < kTileResults; ++j) step[i][j] = fmaf(x[i], weight[j], step[i][j]);
      }
    }
#pragma unroll
    for (int i = 0; i < kTileResults; ++i) {
#pragma unroll
      for (int j = 0; j < kTileResults; ++j) results[i][j] += step[i][j];
    }
    __syncthreads();
  }
}
