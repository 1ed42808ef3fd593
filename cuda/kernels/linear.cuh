// out = x * weight^T (+ bias) (+ residual) without cuBLASLt, and the addition that prepares a product whose
// bias it cannot take.
//   x         [rows, inColumns]        f32 or bf16, with a stride
//   weight    [outColumns, inColumns]  f32 or bf16
//   bias      [outColumns]             f32
//   residual  [rows, outColumns]       the output's type, with a stride; may be out
// Here on the arithmetic units, for every pair of types: grid (64-column tiles, 64-row tiles). Bound: FFMA.
// On tensor cores: linear-tensor.cuh and linear-hopper.cuh.
#pragma once
#include "tile-product.cuh"

template <typename T, typename TWeight, typename TOut>
struct LinearParams {
  const T* x;
  const TWeight* weight;
  const float* bias;
  const TOut* residual;
  TOut* out;
  long long xStride, residualStride, outStride;
  int rows, inColumns, outColumns;
};

template <typename T, typename TWeight, typename TOut>
__device__ __forceinline__ void storeLinear(const LinearParams<T, TWeight, TOut>& p, int row, int column,
                                            float value) {
  if (row >= p.rows || column >= p.outColumns) return;
  if (p.bias != nullptr) value += p.bias[column];
  if (p.residual != nullptr) value += toFloat(p.residual[row * p.residualStride + column]);
  p.out[row * p.outStride + column] = fromFloat<TOut>(value);
}

template <typename T, typename TWeight, typename TOut>
__global__ void __launch_bounds__(kTileThreads)
    linearKernel(const __grid_constant__ LinearParams<T, TWeight, TOut> p) {
  __shared__ TileShared shared;
  const int tileRow = blockIdx.y * kTileSide, tileColumn = blockIdx.x * kTileSide;
  const T* xRows[kTileRowsPerThread];
  const TWeight* weightRows[kTileRowsPerThread];
#pragma unroll
  for (int i = 0; i < kTileRowsPerThread; ++i) {
    const int row = tileRow + tileLoadRow(i), column = tileColumn + tileLoadRow(i);
    xRows[i] = row < p.rows ? p.x + row * p.xStride : nullptr;
    weightRows[i] = column < p.outColumns ? p.weight + static_cast<long long>(column) * p.inColumns : nullptr;
  }
  float results[kTileResults][kTileResults];
  multiplyTile(shared, xRows, weightRows, p.inColumns, results);
#pragma unroll
  for (int i = 0; i < kTileResults; ++i) {
#pragma unroll
    for (int j = 0; j < kTileResults; ++j) {
      storeLinear(p, tileRow + tileFirstRow() + i, tileColumn + tileFirstColumn() + j, results[i][j]);
    }
  }
}

// out = bias (+ residual), to which cuBLASLt then adds the product. One thread an element; grid (rows, slices
// of the columns).
constexpr int kAddBiasThreads = 256;

template <typename T>
struct AddBiasParams {
  const float* bias;
  const T* residual;
  T* out;
  long long residualStride, outStride;
  int columns;
};

template <typename T>
__global__ void addBiasKernel(const __grid_constant__ AddBiasParams<T> p) {
  const int column = blockIdx.y * kAddBiasThreads + threadIdx.x;
  if (column >= p.columns) return;
  float value = p.bias[column];
  if (p.residual != nullptr) value += toFloat(p.residual[blockIdx.x * p.residualStride + column]);
  p.out[blockIdx.x * p.outStride + column] = fromFloat<T>(value);
}
