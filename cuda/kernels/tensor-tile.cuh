// A tile of x * weight^T on the tensor cores of any card, bf16 by bf16: 64 rows by 32 * kColumnWarps weight
// rows. Warps stand two by kColumnWarps, each over 32 rows and 32 weight rows; 64 of the depth at a time come
// through a ring of asynchronous copies. The depth is a multiple of 64, rows are 16-byte aligned.
#pragma once
#include "matrix.cuh"

constexpr int kTensorRowWarps = 2;
constexpr int kTensorWarpSide = 32;  // rows, and weight rows, of a warp
constexpr int kTensorDepth = 64;
constexpr int kTensorChunks = kTensorDepth / kChunkElements;
constexpr int kTensorStages = 4;
constexpr int kTensorRows = kTensorRowWarps * kTensorWarpSide;

using TensorSums = float[2][4][4];  // [16 rows][8 weight rows][fragment]

template <int kColumnWarps>
struct TensorShape {
  static constexpr int kThreads = kTensorRowWarps * kColumnWarps * kWarpSize;
  static constexpr int kWeightRows = kColumnWarps * kTensorWarpSide;
  static constexpr int kStageBytes = (kTensorRows + kWeightRows) * kTensorDepth * 2;
  static constexpr int kSharedBytes = kTensorStages * kStageBytes;
};

// Copies one stage: rows of x first, weight rows behind them. xRow and weightRow give a row's address, or
// null for zeros.
template <int kColumnWarps, typename XRow, typename WeightRow>
__device__ __forceinline__ void copyTensorStage(unsigned stage, int step, XRow xRow, WeightRow weightRow) {
  using Shape = TensorShape<kColumnWarps>;
  constexpr int kRows = kTensorRows + Shape::kWeightRows;
#pragma unroll
  for (int i = 0; i < kRows * kTensorChunks / Shape::kThreads; ++i) {
    const int row = (threadIdx.x + i * Shape::kThreads) / kTensorChunks, chunk = threadIdx.x % kTensorChunks;
    const Bf16* source = row < kTensorRows ? xRow(row) : weightRow(row - kTensorRows);
    const Bf16* from = source == nullptr ? nullptr : source + step * kTensorDepth + chunk * kChunkElements;
    copyChunkAsync(stage + tileOffset<kTensorChunks>(row, chunk), from, from != nullptr);
  }
}

// sums += the warp's part of one stage.
__device__ __forceinline__ void multiplyTensorStage(TensorSums& sums, unsigned stage, int firstX,
                                                    int firstWeight) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int k = 0; k < kTensorDepth / 16; ++k) {
    unsigned x[2][4];
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      const int row = firstX + tile * 16 + lane % 16;
      loadMatrices(x[tile], stage + tileOffset<kTensorChunks>(row, 2 * k + lane / 16));
    }
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      unsigned weight[4];  // two tiles of 8 weight rows, both halves of k each
      const int row = kTensorRows + firstWeight + pair * 16 + lane / 16 * 8 + lane % 8;
      loadMatrices(weight, stage + tileOffset<kTensorChunks>(row, 2 * k + lane / 8 % 2));
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        multiplyAdd(sums[tile][2 * pair], x[tile], weight[0], weight[1]);
        multiplyAdd(sums[tile][2 * pair + 1], x[tile], weight[2], weight[3]);
      }
    }
  }
}

template <int kColumnWarps, typename XRow, typename WeightRow>
__device__ __forceinline__ void multiplyTensorTile(TensorSums& sums, int depth, XRow xRow,
                                                   WeightRow weightRow) {
  using Shape = TensorShape<kColumnWarps>;
  extern __shared__ __align__(128) char ring[];
  const unsigned first = sharedAddress(ring);
  const int numSteps = depth / kTensorDepth, warp = threadIdx.x / kWarpSize;
  const int firstX = warp % kTensorRowWarps * kTensorWarpSide;
  const int firstWeight = warp / kTensorRowWarps * kTensorWarpSide;
#pragma unroll
  for (int step = 0; step < kTensorStages - 1; ++step) {
    const unsigned stage = first + step * Shape::kStageBytes;
    if (step < numSteps) copyTensorStage<kColumnWarps>(stage, step, xRow, weightRow);
    commitCopies();
  }
  for (int step = 0; step < numSteps; ++step) {
    waitCopies<kTensorStages - 2>();
    __syncthreads();  // the stage is there for all, and nobody reads the one that is filled next any more
    const int next = step + kTensorStages - 1;
    if (next < numSteps) {
      copyTensorStage<kColumnWarps>(first + next % kTensorStages * Shape::kStageBytes, next, xRow, weightRow);
    }
    commitCopies();
    multiplyTensorStage(sums, first + step % kTensorStages * Shape::kStageBytes, firstX, firstWeight);
  }
}

// Row and weight row of the thread's sums[tile][column tile][i].
__device__ __forceinline__ int tensorSumRow(int tile, int i) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  return warp % kTensorRowWarps * kTensorWarpSide + tile * 16 + lane / 4 + i / 2 * 8;
}
__device__ __forceinline__ int tensorSumColumn(int columnTile, int i) {
  return columnTile * 8 + threadIdx.x % 4 * 2 + i % 2;
}
