// The product of many rows on the tensor cores of any card (tensor-tile.cuh), where cuBLASLt is absent.
// Operands as in linear.cuh. Bound: the tensor cores and L2.
#pragma once
#include "linear.cuh"
#include "tensor-tile.cuh"

constexpr int kLinearColumnWarps = 4;
using LinearTensorShape = TensorShape<kLinearColumnWarps>;

// Grid (64-row tiles, 128-column tiles): blocks that run together share weights.
template <typename TOut>
__global__ void __launch_bounds__(LinearTensorShape::kThreads)
    linearTensorKernel(const __grid_constant__ LinearParams<Bf16, Bf16, TOut> p) {
  releaseNext();
  waitForPrevious();
  const int firstRow = blockIdx.x * kTensorRows, firstColumn = blockIdx.y * LinearTensorShape::kWeightRows;
  const auto xRow = [&](int row) {
    return firstRow + row < p.rows ? p.x + (firstRow + row) * p.xStride : nullptr;
  };
  const auto weightRow = [&](int row) {
    const int column = firstColumn + row;
    return column < p.outColumns ? p.weight + static_cast<long long>(column) * p.inColumns : nullptr;
  };
  TensorSums sums = {};
  multiplyTensorTile<kLinearColumnWarps>(sums, p.inColumns, xRow, weightRow);

  const int warpColumn = firstColumn + threadIdx.x / kWarpSize / kTensorRowWarps * kTensorWarpSide;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const int tile = i / 16, columnTile = i / 4 % 4, part = i % 4;
    storeLinear(p, firstRow + tensorSumRow(tile, part), warpColumn + tensorSumColumn(columnTile, part),
                sums[tile][columnTile][part]);
  }
}
