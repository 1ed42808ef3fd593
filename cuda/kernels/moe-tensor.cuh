// The experts' products on the tensor cores of any card (tensor-tile.cuh): a block multiplies 64 grouped
// assignments (moe-plan.cuh) of one expert with 32 * kColumnWarps of its weight rows. Shapes as in
// moe-experts.cuh. For gate and up a warp's weight rows are 16 gates and the 16 ups beside them, so that a
// thread holds both sides of its results. Bound: the weights of the experts in use, HBM, for few rows; L2 and
// the tensor cores for many.
#pragma once
#include "moe-experts.cuh"
#include "tensor-tile.cuh"

static_assert(kTensorRows == kTileSide, "a block takes one tile of the plan");

// Grid (blocks of 16 * kColumnWarps columns of inner, assignment tiles).
template <int kColumnWarps>
__global__ void __launch_bounds__(TensorShape<kColumnWarps>::kThreads)
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
    const int column = firstColumn + row / kTensorWarpSide * 16 + row % 16;
    const int half = row / 16 % 2 * p.inner;
    return column < p.inner ? matrix + static_cast<long long>(half + column) * p.hidden : nullptr;
  };
  TensorSums sums = {};
  multiplyTensorTile<kColumnWarps>(sums, p.hidden, xRow, weightRow);

  const int warpColumn = firstColumn + threadIdx.x / kWarpSize / kTensorRowWarps * 16;
  const float* bias =
      p.gateUpBias == nullptr ? nullptr : p.gateUpBias + static_cast<long long>(expert) * 2 * p.inner;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int tile = i / 8, columnTile = i / 4 % 2, part = i % 4;
    const int assignment = assignments[tensorSumRow(tile, part)];
    const int column = warpColumn + tensorSumColumn(columnTile, part);
    if (assignment < 0 || column >= p.inner) continue;
    const float gate = sums[tile][columnTile][part] + (bias == nullptr ? 0.0f : bias[column]);
    const float up = sums[tile][columnTile + 2][part] + (bias == nullptr ? 0.0f : bias[p.inner + column]);
    p.activations[static_cast<long long>(assignment) * p.inner + column] =
        fromFloat<Bf16>(activate(gate, p.activation) * up);
  }
}

// Grid (blocks of 32 * kColumnWarps columns of hidden, assignment tiles).
template <int kColumnWarps>
__global__ void __launch_bounds__(TensorShape<kColumnWarps>::kThreads)
    moeTensorDownKernel(const __grid_constant__ MoeBf16Params p) {
  __shared__ int assignments[kTileSide];
  releaseNext();
  waitForPrevious();
  const int expert = p.tileExperts[blockIdx.y];
  if (expert < 0) return;
  if (threadIdx.x < kTileSide) assignments[threadIdx.x] = p.assignments[blockIdx.y * kTileSide + threadIdx.x];
  __syncthreads();
  const int firstColumn = blockIdx.x * TensorShape<kColumnWarps>::kWeightRows;
  const Bf16* matrix = p.down + static_cast<long long>(expert) * p.hidden * p.inner;
  const auto xRow = [&](int row) {
    const int assignment = assignments[row];
    return assignment < 0 ? nullptr : moeInput<false>(p, assignment);
  };
  const auto weightRow = [&](int row) {
    const int column = firstColumn + row;
    return column < p.hidden ? matrix + static_cast<long long>(column) * p.inner : nullptr;
  };
  TensorSums sums = {};
  multiplyTensorTile<kColumnWarps>(sums, p.inner, xRow, weightRow);

  const int warpColumn = firstColumn + threadIdx.x / kWarpSize / kTensorRowWarps * kTensorWarpSide;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int tile = i / 16, columnTile = i / 4 % 4, part = i % 4;
    const int assignment = assignments[tensorSumRow(tile, part)];
    const int column = warpColumn + tensorSumColumn(columnTile, part);
    if (assignment < 0 || column >= p.hidden) continue;
    const float bias =
        p.downBias == nullptr ? 0.0f : p.downBias[static_cast<long long>(expert) * p.hidden + column];
    p.products[static_cast<long long>(assignment) * p.hidden + column] =
        fromFloat<Bf16>(sums[tile][columnTile][part] + bias);
  }
}
