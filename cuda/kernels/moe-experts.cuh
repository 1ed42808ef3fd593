// The experts' products over tiles of grouped assignments, and their weighted sum.
//   gateUp       [numExperts * 2 * inner, hidden]  weight; expert e's gate rows, then its up rows
//   down         [numExperts * hidden, inner]      weight
//   activations  [rows * topK, inner]              T: activation(gate) * up of each assignment
//   products     [rows * topK, hidden]             T: down product of each assignment
// A tile is 64 assignments of one expert (moe-plan.cuh) by 64 columns; sums are in rank order, so they repeat
// exactly. Bound: the weights of the experts in use, HBM, for few rows; FFMA for many.
#pragma once
#include "activation.cuh"
#include "tile-product.cuh"

template <typename T, typename TWeight>
struct MoeExpertsParams {
  const T* x;
  const TWeight* gateUp;
  const TWeight* down;
  const float* gateUpBias;
  const float* downBias;
  const float* weights;
  const T* residual;
  T* out;
  const int* ids;
  const int* tileExperts;
  const int* assignments;
  T* activations;
  T* products;
  long long xStride, residualStride, outStride;
  int rows, hidden, inner, numExperts, topK, activation;
};

using MoeBf16Params = MoeExpertsParams<Bf16, Bf16>;

// Row that an assignment multiplies: of x for gates and ups, else its activations.
template <bool kIsGated>
__device__ __forceinline__ const Bf16* moeInput(const MoeBf16Params& p, int assignment) {
  if (kIsGated) return p.x + assignment / p.topK * p.xStride;
  return p.activations + static_cast<long long>(assignment) * p.inner;
}

template <typename TWeight>
__device__ __forceinline__ void weightTileRows(const TWeight* (&rows)[kTileRowsPerThread],
                                               const TWeight* matrix, int firstColumn, int numColumns,
                                               int depth) {
#pragma unroll
  for (int i = 0; i < kTileRowsPerThread; ++i) {
    const int column = firstColumn + tileLoadRow(i);
    rows[i] = column < numColumns ? matrix + static_cast<long long>(column) * depth : nullptr;
  }
}

// Grid (64-column tiles of inner, assignment tiles).
template <typename T, typename TWeight>
__global__ void __launch_bounds__(kTileThreads)
    moeGateUpKernel(const __grid_constant__ MoeExpertsParams<T, TWeight> p) {
  __shared__ TileShared shared;
  releaseNext();
  waitForPrevious();
  const int expert = p.tileExperts[blockIdx.y];
  if (expert < 0) return;
  const int* assignments = p.assignments + blockIdx.y * kTileSide;
  const int tileColumn = blockIdx.x * kTileSide;
  const T* xRows[kTileRowsPerThread];
#pragma unroll
  for (int i = 0; i < kTileRowsPerThread; ++i) {
    const int assignment = assignments[tileLoadRow(i)];
    xRows[i] = assignment < 0 ? nullptr : p.x + assignment / p.topK * p.xStride;
  }
  const TWeight* weightRows[kTileRowsPerThread];
  const TWeight* gateMatrix = p.gateUp + static_cast<long long>(expert) * 2 * p.inner * p.hidden;
  float gate[kTileResults][kTileResults], up[kTileResults][kTileResults];
  weightTileRows(weightRows, gateMatrix, tileColumn, p.inner, p.hidden);
  multiplyTile(shared, xRows, weightRows, p.hidden, gate);
  weightTileRows(weightRows, gateMatrix + static_cast<long long>(p.inner) * p.hidden, tileColumn, p.inner,
                 p.hidden);
  multiplyTile(shared, xRows, weightRows, p.hidden, up);

  const float* bias =
      p.gateUpBias == nullptr ? nullptr : p.gateUpBias + static_cast<long long>(expert) * 2 * p.inner;
#pragma unroll
  for (int i = 0; i < kTileResults; ++i) {
    const int assignment = assignments[tileFirstRow() + i];
#pragma unroll
    for (int j = 0; j < kTileResults; ++j) {
      const int column = tileColumn + tileFirstColumn() + j;
      if (assignment < 0 || column >= p.inner) continue;
      const float gateValue = gate[i][j] + (bias == nullptr ? 0.0f : bias[column]);
      const float upValue = up[i][j] + (bias == nullptr ? 0.0f : bias[p.inner + column]);
      const float value = activate(gateValue, p.activation) * upValue;
      p.activations[static_cast<long long>(assignment) * p.inner + column] = fromFloat<T>(value);
    }
  }
}

// Grid (64-column tiles of hidden, assignment tiles).
template <typename T, typename TWeight>
__global__ void __launch_bounds__(kTileThreads)
    moeDownKernel(const __grid_constant__ MoeExpertsParams<T, TWeight> p) {
  __shared__ TileShared shared;
  releaseNext();
  waitForPrevious();
  const int expert = p.tileExperts[blockIdx.y];
  if (expert < 0) return;
  const int* assignments = p.assignments + blockIdx.y * kTileSide;
  const int tileColumn = blockIdx.x * kTileSide;
  const T* rows[kTileRowsPerThread];
#pragma unroll
  for (int i = 0; i < kTileRowsPerThread; ++i) {
    const int assignment = assignments[tileLoadRow(i)];
    rows[i] = assignment < 0 ? nullptr : p.activations + static_cast<long long>(assignment) * p.inner;
  }
  const TWeight* weightRows[kTileRowsPerThread];
  weightTileRows(weightRows, p.down + static_cast<long long>(expert) * p.hidden * p.inner, tileColumn,
                 p.hidden, p.inner);
  float results[kTileResults][kTileResults];
  multiplyTile(shared, rows, weightRows, p.inner, results);
#pragma unroll
  for (int i = 0; i < kTileResults; ++i) {
    const int assignment = assignments[tileFirstRow() + i];
#pragma unroll
    for (int j = 0; j < kTileResults; ++j) {
      const int column = tileColumn + tileFirstColumn() + j;
      if (assignment < 0 || column >= p.hidden) continue;
      const float bias =
          p.downBias == nullptr ? 0.0f : p.downBias[static_cast<long long>(expert) * p.hidden + column];
      p.products[static_cast<long long>(assignment) * p.hidden + column] = fromFloat<T>(results[i][j] + bias);
    }
  }
}

constexpr int kMoeSumThreads = 256;

// out[r] = sum over j, ascending, of weights[r][j] * products[r][j] (+ residual). Grid (rows, slices of the
// columns); a thread has kWidth columns, which divides hidden and the strides.
template <typename T, typename TWeight, int kWidth>
__global__ void moeSumKernel(const __grid_constant__ MoeExpertsParams<T, TWeight> p) {
  releaseNext();
  waitForPrevious();
  const int row = blockIdx.x, column = (blockIdx.y * kMoeSumThreads + threadIdx.x) * kWidth;
  if (column >= p.hidden) return;
  float sums[kWidth] = {}, values[kWidth];
#pragma unroll 4
  for (int j = 0; j < p.topK; ++j) {
    const long long assignment = static_cast<long long>(row) * p.topK + j;
    const float weight = p.weights[assignment];
    loadFloats<T, kWidth>(p.products + assignment * p.hidden + column, values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sums[i] = fmaf(weight, values[i], sums[i]);
  }
  if (p.residual != nullptr) {
    loadFloats<T, kWidth>(p.residual + row * p.residualStride + column, values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sums[i] += values[i];
  }
  storeFloats<T, kWidth>(p.out + row * p.outStride + column, sums);
}
