// The product of many rows on the warpgroup's tensor cores of compute capability 9.0, where cuBLASLt is
// absent. Operands as in linear.cuh, bf16 by bf16.
//   xMap       tensor map [row, column] of x, boxes of 64 columns and 128 rows
//   weightMap  tensor map [weight row, column], boxes of 64 columns and kColumns rows
// A block makes 128 rows of kColumns outputs: one thread sends for the operands, two warpgroups have 64 rows
// each. Results leave through shared memory, a row at a time. Bound: the tensor cores.
#pragma once
#include "linear.cuh"
#include "warpgroup-products.cuh"

constexpr int kLinearThreads = 3 * kWarpgroupThreads;
constexpr int kLinearGroupRows = 64, kLinearRows = 2 * kLinearGroupRows;
constexpr int kLinearStepColumns = kSwizzleRowBytes / 2;  // of depth
// Row tiles that share a column of tiles before the next: blocks that run together are about as many rows as
// columns, and read the least.
constexpr int kLinearGroupTiles = 16;
constexpr int kLinearRingBarrier = 1, kLinearRowsBarrier = 2;  // named: of both warpgroups, of one (2, 3)
constexpr int kLinearCopyingRegisters = 40, kLinearComputingRegisters = 232;

template <int kColumns>
struct LinearHopperShape {
  static constexpr int kXBytes = kLinearRows * kSwizzleRowBytes;
  static constexpr int kStageBytes = kXBytes + kColumns * kSwizzleRowBytes;
  static constexpr int kStages = 192 * 1024 / kStageBytes;
  static constexpr int kSharedBytes = kStages * kStageBytes + kSwizzleAlignment;
  static constexpr int kStagedStride = kColumns + 8;  // keeps the writes of a warp off each other's banks
  static_assert(kLinearRows * kStagedStride * sizeof(float) <= kStages * kStageBytes);
};

template <typename TOut>
struct LinearHopperParams {
  TensorMap xMap, weightMap;
  LinearParams<Bf16, Bf16, TOut> p;
  int numRowTiles, numColumnTiles;
  bool isWide;  // outputs and residuals can be moved four at a time
};

// First row and first column of the block's outputs.
struct LinearPlace {
  int row, column;
};

template <int kColumns, typename TOut>
__device__ __forceinline__ LinearPlace linearPlace(const LinearHopperParams<TOut>& params) {
  const int groupBlocks = kLinearGroupTiles * params.numColumnTiles;
  const int firstTile = static_cast<int>(blockIdx.x) / groupBlocks * kLinearGroupTiles;
  const int size = min(params.numRowTiles - firstTile, kLinearGroupTiles);
  const int inside = static_cast<int>(blockIdx.x) % groupBlocks;
  return LinearPlace{(firstTile + inside % size) * kLinearRows, inside / size * kColumns};
}

template <int kStages>
struct LinearRing {
  unsigned long long full[kStages], empty[kStages];
};

// One thread: sends for the operands of every step.
template <int kColumns, typename TOut>
__device__ __forceinline__ void copyLinearSteps(const LinearHopperParams<TOut>& params,
                                                const LinearPlace& block, unsigned tiles,
                                                LinearRing<LinearHopperShape<kColumns>::kStages>& ring) {
  using Shape = LinearHopperShape<kColumns>;
  RingPlace place;
  for (int column = 0; column < params.p.inColumns; column += kLinearStepColumns) {
    const unsigned stage = tiles + place.stage * Shape::kStageBytes;
    const unsigned full = sharedAddress(&ring.full[place.stage]);
    waitBarrier(sharedAddress(&ring.empty[place.stage]), place.parity ^ 1);
    arriveExpecting(full, Shape::kStageBytes);
    copyMatrixBox(stage, &params.xMap, column, block.row, full);
    copyMatrixBox(stage + Shape::kXBytes, &params.weightMap, column, block.column, full);
    advance<Shape::kStages>(place);
  }
}

template <int kColumns>
using LinearSums = float[kColumns / 8][4];

// A computing warpgroup: its 64 rows over all of the depth.
template <int kColumns>
__device__ __forceinline__ void multiplyLinearSteps(LinearSums<kColumns>& sums, int numSteps, int warpgroup,
                                                    unsigned tiles,
                                                    LinearRing<LinearHopperShape<kColumns>::kStages>& ring) {
  using Shape = LinearHopperShape<kColumns>;
  const bool leads = threadIdx.x % kWarpSize == 0;
  RingPlace place, before;
  for (int step = 0; step < numSteps; ++step, advance<Shape::kStages>(place)) {
    const unsigned stage = tiles + place.stage * Shape::kStageBytes;
    const auto x = describeTile(stage + warpgroup * kLinearGroupRows * kSwizzleRowBytes, 0);
    const auto weights = describeTile(stage + Shape::kXBytes, 0);
    waitBarrier(sharedAddress(&ring.full[place.stage]), place.parity);
    beginProducts();
#pragma unroll
    for (int k = 0; k < kLinearStepColumns / 16; ++k) {
      multiplyTransposed(sums, x + 2 * k, weights + 2 * k, step > 0 || k > 0);
    }
    commitProducts();
    waitProducts<1>();
    if (step == 0) continue;
    __syncwarp();
    if (leads) arrive(sharedAddress(&ring.empty[before.stage]));
    advance<Shape::kStages>(before);
  }
  waitProducts<0>();
}

// A warpgroup's sums, [row][column].
template <int kColumns>
__device__ __forceinline__ void stageLinearSums(const LinearSums<kColumns>& sums, float* staged) {
  constexpr int kStride = LinearHopperShape<kColumns>::kStagedStride;
  const int thread = threadIdx.x % kWarpgroupThreads, lane = thread % kWarpSize;
  float* own = staged + (thread / kWarpSize * 16 + lane / 4) * kStride + lane % 4 * 2;
#pragma unroll
  for (int column = 0; column < kColumns / 8; ++column) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      *reinterpret_cast<float2*>(own + half * 8 * kStride + column * 8) =
          make_float2(sums[column][2 * half], sums[column][2 * half + 1]);
    }
  }
}

template <int kColumns, int kWidth, typename TOut>
__device__ __forceinline__ void storeLinearRows(const LinearParams<Bf16, Bf16, TOut>& p,
                                                const LinearPlace& first, const float* staged) {
  constexpr int kRowParts = kColumns / kWidth;
#pragma unroll 4
  for (int i = threadIdx.x % kWarpgroupThreads; i < kLinearGroupRows * kRowParts; i += kWarpgroupThreads) {
    const int place = i % kRowParts * kWidth, column = first.column + place;
    const int row = first.row + i / kRowParts;
    const float* sums = staged + i / kRowParts * LinearHopperShape<kColumns>::kStagedStride + place;
    if constexpr (kWidth == 1) {
      storeLinear(p, row, column, *sums);
    } else {
      if (row >= p.rows || column >= p.outColumns) continue;
      float values[kWidth], added[kWidth];
      loadFloats<float, kWidth>(sums, values);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) values[j] += p.bias == nullptr ? 0.0f : p.bias[column + j];
      if (p.residual != nullptr) {
        loadFloats<TOut, kWidth>(p.residual + row * p.residualStride + column, added);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) values[j] += added[j];
      }
      storeFloats<TOut, kWidth>(p.out + row * p.outStride + column, values);
    }
  }
}

// A computing warpgroup.
template <int kColumns, typename TOut>
__device__ __forceinline__ void computeLinearTile(const LinearHopperParams<TOut>& params,
                                                  const LinearPlace& block, char* memory,
                                                  LinearRing<LinearHopperShape<kColumns>::kStages>& ring) {
  const int warpgroup = threadIdx.x / kWarpgroupThreads - 1;
  const int numSteps = (params.p.inColumns + kLinearStepColumns - 1) / kLinearStepColumns;
  LinearSums<kColumns> sums;
  multiplyLinearSteps<kColumns>(sums, numSteps, warpgroup, sharedAddress(memory), ring);
  waitNamedBarrier(kLinearRingBarrier, 2 * kWarpgroupThreads);  // nobody needs the ring any more
  float* staged = reinterpret_cast<float*>(memory) +
                  warpgroup * kLinearGroupRows * LinearHopperShape<kColumns>::kStagedStride;
  stageLinearSums<kColumns>(sums, staged);
  waitNamedBarrier(kLinearRowsBarrier + warpgroup, kWarpgroupThreads);
  const LinearPlace first{block.row + warpgroup * kLinearGroupRows, block.column};
  if (params.isWide) {
    storeLinearRows<kColumns, 4>(params.p, first, staged);
  } else {
    storeLinearRows<kColumns, 1>(params.p, first, staged);
  }
}

// Grid (tiles of 128 rows and kColumns columns). Dynamic shared memory: Shape::kSharedBytes.
template <int kColumns, typename TOut>
__global__ void __launch_bounds__(kLinearThreads, 1)
    linearHopperKernel(const __grid_constant__ LinearHopperParams<TOut> params) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = LinearHopperShape<kColumns>;
  extern __shared__ __align__(128) char memory[];
  __shared__ LinearRing<Shape::kStages> ring;
  releaseNext();
  if (threadIdx.x == 0) {
    prefetchTensorMap(&params.xMap);
    prefetchTensorMap(&params.weightMap);
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      initBarrier(sharedAddress(&ring.full[stage]), 1);
      initBarrier(sharedAddress(&ring.empty[stage]), 2 * kWarpgroupThreads / kWarpSize);
    }
    publishBarriers();
  }
  waitForPrevious();
  __syncthreads();
  char* tiles = memory + (-sharedAddress(memory) & (kSwizzleAlignment - 1));
  const LinearPlace block = linearPlace<kColumns>(params);
  if (threadIdx.x < kWarpgroupThreads) {
    lowerRegisters<kLinearCopyingRegisters>();
    if (threadIdx.x == 0) copyLinearSteps<kColumns>(params, block, sharedAddress(tiles), ring);
  } else {
    raiseRegisters<kLinearComputingRegisters>();
    computeLinearTile<kColumns>(params, block, tiles, ring);
  }
#endif
}
