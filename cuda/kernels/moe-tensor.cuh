// The experts' products on the tensor cores, bf16 by bf16: a block multiplies 64 grouped assignments
// (moe-plan.cuh) of one expert with 32 * kColumnWarps of its weight rows. Shapes as in moe-experts.cuh;
// hidden and inner are multiples of 64, rows 16-byte aligned.
// Warps stand two by kColumnWarps, each over 32 assignments and 32 weight rows; 64 of the depth at a time
// come through a ring of asynchronous copies. For gate and up a warp's weight rows are 16 gates and the 16
// ups beside them, so that a thread holds both sides of its results. Bound: the weights of the experts in
// use, HBM, for few rows; L2 and the tensor cores for many.
#pragma once
#include "matrix.cuh"
#include "moe-experts.cuh"

constexpr int kMoeRowWarps = 2;
constexpr int kMoeWarpSide = 32;  // assignments, and weight rows, of a warp
constexpr int kMoeDepth = 64;
constexpr int kMoeChunks = kMoeDepth / kChunkElements;
constexpr int kMoeStages = 4;
static_assert(kMoeRowWarps * kMoeWarpSide == kTileSide, "a block takes one tile of the plan");

using MoeSums = float[2][4][4];  // [16 assignments][8 weight rows][fragment]

template <int kColumnWarps>
struct MoeTensorShape {
  static constexpr int kThreads = kMoeRowWarps * kColumnWarps * kWarpSize;
  static constexpr int kWeightRows = kColumnWarps * kMoeWarpSide;
  static constexpr int kStageBytes = (kTileSide + kWeightRows) * kMoeDepth * 2;
  static constexpr int kSharedBytes = kMoeStages * kStageBytes;
};

// Copies one stage: rows of x at [0, 64), weight rows behind them. xRow and weightRow give a row's address,
// or null for zeros.
template <int kColumnWarps, typename XRow, typename WeightRow>
__device__ __forceinline__ void copyMoeStage(unsigned stage, int step, XRow xRow, WeightRow weightRow) {
  using Shape = MoeTensorShape<kColumnWarps>;
  constexpr int kRows = kTileSide + Shape::kWeightRows;
#pragma unroll
  for (int i = 0; i < kRows * kMoeChunks / Shape::kThreads; ++i) {
    const int row = (threadIdx.x + i * Shape::kThreads) / kMoeChunks, chunk = threadIdx.x % kMoeChunks;
    const Bf16* source = row < kTileSide ? xRow(row) : weightRow(row - kTileSide);
    const Bf16* from = source == nullptr ? nullptr : source + step * kMoeDepth + chunk * kChunkElements;
    copyChunkAsync(stage + tileOffset<kMoeChunks>(row, chunk), from, from != nullptr);
  }
}

// sums += the warp's part of one stage.
__device__ __forceinline__ void multiplyMoeStage(MoeSums& sums, unsigned stage, int firstX, int firstWeight) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int k = 0; k < kMoeDepth / 16; ++k) {
    unsigned x[2][4];
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      const int row = firstX + tile * 16 + lane % 16;
      loadMatrices(x[tile], stage + tileOffset<kMoeChunks>(row, 2 * k + lane / 16));
    }
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      unsigned weight[4];  // two tiles of 8 weight rows, both halves of k each
      const int row = kTileSide + firstWeight + pair * 16 + lane / 16 * 8 + lane % 8;
      loadMatrices(weight, stage + tileOffset<kMoeChunks>(row, 2 * k + lane / 8 % 2));
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        multiplyAdd(sums[tile][2 * pair], x[tile], weight[0], weight[1]);
        multiplyAdd(sums[tile][2 * pair + 1], x[tile], weight[2], weight[3]);
      }
    }
  }
}

template <int kColumnWarps, typename XRow, typename WeightRow>
__device__ __forceinline__ void multiplyMoe(MoeSums& sums, int depth, XRow xRow, WeightRow weightRow) {
  using Shape = MoeTensorShape<kColumnWarps>;
  extern __shared__ __align__(128) char ring[];
  const unsigned first = sharedAddress(ring);
  const int numSteps = depth / kMoeDepth, warp = threadIdx.x / kWarpSize;
  const int firstX = warp % kMoeRowWarps * kMoeWarpSide, firstWeight = warp / kMoeRowWarps * kMoeWarpSide;
#pragma unroll
  for (int step = 0; step < kMoeStages - 1; ++step) {
    if (step < numSteps) copyMoeStage<kColumnWarps>(first + step * Shape::kStageBytes, step, xRow, weightRow);
    commitCopies();
  }
  for (int step = 0; step < numSteps; ++step) {
    waitCopies<kMoeStages - 2>();
    __syncthreads();  // the stage is there for all, and nobody reads the one that is filled next any more
    const int next = step + kMoeStages - 1;
    if (next < numSteps) {
      copyMoeStage<kColumnWarps>(first + next % kMoeStages * Shape::kStageBytes, next, xRow, weightRow);
    }
    commitCopies();
    multiplyMoeStage(sums, first + step % kMoeStages * Shape::kStageBytes, firstX, firstWeight);
  }
}

// Assignment and weight row of the thread's sums[tile][column tile][i].
__device__ __forceinline__ int moeSumRow(int tile, int i) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  return warp % kMoeRowWarps * kMoeWarpSide + tile * 16 + lane / 4 + i / 2 * 8;
}
__device__ __forceinline__ int moeSumColumn(int columnTile, int i) {
  return columnTile * 8 + threadIdx.x % 4 * 2 + i % 2;
}

// Grid (blocks of 16 * kColumnWarps columns of inner, assignment tiles).
template <int kColumnWarps>
__global__ void __launch_bounds__(MoeTensorShape<kColumnWarps>::kThreads)
    moeTensorGateUpKernel(const __grid_constant__ MoeBf16Params p) {
  __shared__ int assignments[kTileSide];
  releaseNext();
  waitForPrevious();
  const int expert = p.tileExperts[blockIdx.y];
  if (expert < 0) return;
  if (threadIdx.x < kTileSide) assignments[threadIdx.x] = p.assignments[blockIdx.y * kTileSide + threadIdx.x];
  __syncthreads();
  const int firstColumn = blockIdx.x * kColumnWarps * 16;
  const Bf16* matrix = p.gateUp + static_cast<long long>(expert) * 2 * p.inner * p.hidden;
  const auto xRow = [&](int row) {
    const int assignment = assignments[row];
    return assignment < 0 ? nullptr : moeInput<true>(p, assignment);
  };
  const auto weightRow = [&](int row) {
    const int column = firstColumn + row / kMoeWarpSide * 16 + row % 16;
    const int half = row / 16 % 2 * p.inner;
    return column < p.inner ? matrix + static_cast<long long>(half + column) * p.hidden : nullptr;
  };
  MoeSums sums = {};
  multiplyMoe<kColumnWarps>(sums, p.hidden, xRow, weightRow);

  const int warpColumn = firstColumn + threadIdx.x / kWarpSize / kMoeRowWarps * 16;
  const float* bias =
      p.gateUpBias == nullptr ? nullptr : p.gateUpBias + static_cast<long long>(expert) * 2 * p.inner;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int tile = i / 8, columnTile = i / 4 % 2, part = i % 4;
    const int assignment = assignments[moeSumRow(tile, part)];
    const int column = warpColumn + moeSumColumn(columnTile, part);
    if (assignment < 0 || column >= p.inner) continue;
    const float gate = sums[tile][columnTile][part] + (bias == nullptr ? 0.0f : bias[column]);
    const float up = sums[tile][columnTile + 2][part] + (bias == nullptr ? 0.0f : bias[p.inner + column]);
    p.activations[static_cast<long long>(assignment) * p.inner + column] =
        fromFloat<Bf16>(activate(gate, p.activation) * up);
  }
}

// Grid (blocks of 32 * kColumnWarps columns of hidden, assignment tiles).
template <int kColumnWarps>
__global__ void __launch_bounds__(MoeTensorShape<kColumnWarps>::kThreads)
    moeTensorDownKernel(const __grid_constant__ MoeBf16Params p) {
  __shared__ int assignments[kTileSide];
  releaseNext();
  waitForPrevious();
  const int expert = p.tileExperts[blockIdx.y];
  if (expert < 0) return;
  if (threadIdx.x < kTileSide) assignments[threadIdx.x] = p.assignments[blockIdx.y * kTileSide + threadIdx.x];
  __syncthreads();
  const int firstColumn = blockIdx.x * MoeTensorShape<kColumnWarps>::kWeightRows;
  const Bf16* matrix = p.down + static_cast<long long>(expert) * p.hidden * p.inner;
  const auto xRow = [&](int row) {
    const int assignment = assignments[row];
    return assignment < 0 ? nullptr : moeInput<false>(p, assignment);
  };
  const auto weightRow = [&](int row) {
    const int column = firstColumn + row;
    return column < p.hidden ? matrix + static_cast<long long>(column) * p.inner : nullptr;
  };
  MoeSums sums = {};
  multiplyMoe<kColumnWarps>(sums, p.inner, xRow, weightRow);

  const int warpColumn = firstColumn + threadIdx.x / kWarpSize / kMoeRowWarps * kMoeWarpSide;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int tile = i / 16, columnTile = i / 4 % 4, part = i % 4;
    const int assignment = assignments[moeSumRow(tile, part)];
    const int column = warpColumn + moeSumColumn(columnTile, part);
    if (assignment < 0 || column >= p.hidden) continue;
    const float bias =
        p.downBias == nullptr ? 0.0f : p.downBias[static_cast<long long>(expert) * p.hidden + column];
    p.products[static_cast<long long>(assignment) * p.hidden + column] =
        fromFloat<Bf16>(sums[tile][columnTile][part] + bias);
  }
}
