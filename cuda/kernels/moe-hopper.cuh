// The experts' products on the warpgroup's tensor cores of compute capability 9.0, bf16 by bf16. Shapes as in
// moe-experts.cuh; hidden and inner are multiples of 64, rows 16-byte aligned.
//   weightMap  tensor map [weight row, column] of gateUp or down, boxes of 64 columns and 64 rows
// A block multiplies 256 weight rows of an expert with a tile of kAssignments grouped assignments
// (moe-plan.cuh) of the same. A warpgroup gathers the rows of x, whose copies each thread follows itself, and
// sends for the weights; two others have 128 weight rows each, as two products of 64: the gates and the ups
// beside them, or two runs of down's rows. Results leave through shared memory, a row at a time.
// Bound: the weights of the experts in use, HBM, for few assignments each; tensor cores for many.
#pragma once
#include "moe-experts.cuh"
#include "warpgroup-products.cuh"

constexpr int kMoeHopperThreads = 3 * kWarpgroupThreads;
constexpr int kMoeBoxRows = 64;      // weight rows of one product
constexpr int kMoeWeightBoxes = 4;   // of a block, two a warpgroup
constexpr int kMoeWeightRows = kMoeWeightBoxes * kMoeBoxRows;
constexpr int kMoeStepColumns = kSwizzleRowBytes / 2;  // of depth
constexpr int kMoeBoxBytes = kMoeBoxRows * kSwizzleRowBytes;
constexpr int kMoeStepsBehind = 2;   // a step of x is announced when this many more are on their way
constexpr int kMoeTilesBarrier = 1, kMoeRowsBarrier = 2;  // named barriers: of both warpgroups, of one (2, 3)
constexpr int kMoeCopyingRegisters = 40, kMoeComputingRegisters = 232;

template <int kAssignments>
struct MoeHopperShape {
  static constexpr int kXBytes = kAssignments * kSwizzleRowBytes;
  static constexpr int kWeightBytes = kMoeWeightBoxes * kMoeBoxBytes;
  static constexpr int kStageBytes = kWeightBytes + kXBytes;
  static constexpr int kStages = 200 * 1024 / kStageBytes;
  static constexpr int kSharedBytes = kStages * kStageBytes + kSwizzleAlignment;
  static_assert(kStages > kMoeStepsBehind);
};

struct MoeHopperParams {
  TensorMap weightMap;
  MoeBf16Params p;
};

template <int kStages>
struct MoeRing {
  unsigned long long full[kStages], empty[kStages];
};

// First weight row of a box: a warpgroup has the gates and the ups of 64 columns, or two runs of 64.
template <bool kIsGated>
__device__ __forceinline__ int moeBoxRow(const MoeBf16Params& p, int expert, int box) {
  if (kIsGated) {
    const int column = blockIdx.x * (kMoeWeightRows / 2) + box / 2 * kMoeBoxRows;
    return (2 * expert + box % 2) * p.inner + column;
  }
  return expert * p.hidden + blockIdx.x * kMoeWeightRows + box * kMoeBoxRows;
}

// The copying warpgroup.
template <int kAssignments, bool kIsGated>
__device__ __forceinline__ void copyMoeSteps(const MoeHopperParams& params, int expert,
                                             const int (&assignments)[kAssignments], unsigned tiles,
                                             MoeRing<MoeHopperShape<kAssignments>::kStages>& ring) {
  using Shape = MoeHopperShape<kAssignments>;
  constexpr int kRowsAtOnce = kWarpgroupThreads / 8, kOwnRows = kAssignments / kRowsAtOnce;
  const auto& p = params.p;
  const int numSteps = (kIsGated ? p.hidden : p.inner) / kMoeStepColumns;
  const int chunk = threadIdx.x % 8, firstRow = threadIdx.x / 8;
  const Bf16* sources[kOwnRows];
#pragma unroll
  for (int i = 0; i < kOwnRows; ++i) {
    const int assignment = assignments[firstRow + i * kRowsAtOnce];
    const Bf16* row = moeInput<kIsGated>(p, assignment);
    sources[i] = assignment < 0 ? nullptr : row + chunk * kChunkElements;
  }
  const int box = threadIdx.x / kWarpSize, boxRow = moeBoxRow<kIsGated>(p, expert, box);
  const unsigned target = Shape::kWeightBytes + firstRow * kSwizzleRowBytes + (chunk ^ (firstRow & 7)) * 16;
  RingPlace place, announced;
  const auto announce = [&] {
    fenceAsyncProxy();
    arrive(sharedAddress(&ring.full[announced.stage]));
    advance<Shape::kStages>(announced);
  };
  for (int step = 0; step < numSteps; ++step, advance<Shape::kStages>(place)) {
    if (step >= kMoeStepsBehind) {
      waitCopies<kMoeStepsBehind - 1>();
      announce();
    }
    const unsigned stage = tiles + place.stage * Shape::kStageBytes;
    waitBarrier(sharedAddress(&ring.empty[place.stage]), place.parity ^ 1);
    if (threadIdx.x % kWarpSize == 0) {
      const unsigned full = sharedAddress(&ring.full[place.stage]);
      arriveExpecting(full, kMoeBoxBytes);
      copyMatrixBox(stage + box * kMoeBoxBytes, &params.weightMap, step * kMoeStepColumns, boxRow, full);
    }
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
      const Bf16* source = sources[i];
      copyChunkAsync(stage + target + i * kRowsAtOnce * kSwizzleRowBytes,
                     source == nullptr ? nullptr : source + step * kMoeStepColumns, source != nullptr);
    }
    commitCopies();
  }
  waitCopies<0>();
  for (int step = max(numSteps - kMoeStepsBehind, 0); step < numSteps; ++step) announce();
}

template <int kAssignments>
using MoeHopperSums = float[2][kAssignments / 8][4];

// A computing warpgroup: its 128 weight rows times the first kTaken assignments, over all of the depth.
template <int kAssignments, int kTaken>
__device__ __forceinline__ void multiplyMoeSteps(MoeHopperSums<kAssignments>& sums, int numSteps,
                                                 int warpgroup, unsigned tiles,
                                                 MoeRing<MoeHopperShape<kAssignments>::kStages>& ring) {
  using Shape = MoeHopperShape<kAssignments>;
  const bool leads = threadIdx.x % kWarpSize == 0;
  auto& first = reinterpret_cast<float(&)[kTaken / 8][4]>(sums[0]);
  auto& second = reinterpret_cast<float(&)[kTaken / 8][4]>(sums[1]);
  RingPlace place, before;
  const auto release = [&] {
    __syncwarp();
    if (leads) arrive(sharedAddress(&ring.empty[before.stage]));
    advance<Shape::kStages>(before);
  };
  for (int step = 0; step < numSteps; ++step, advance<Shape::kStages>(place)) {
    const unsigned stage = tiles + place.stage * Shape::kStageBytes;
    const unsigned long long weights = describeTile(stage + 2 * warpgroup * kMoeBoxBytes, 0);
    const unsigned long long x = describeTile(stage + Shape::kWeightBytes, 0);
    waitBarrier(sharedAddress(&ring.full[place.stage]), place.parity);
    beginProducts();
#pragma unroll
    for (int k = 0; k < kMoeStepColumns / 16; ++k) {
      const bool accumulates = step > 0 || k > 0;
      multiplyTransposed(first, weights + 2 * k, x + 2 * k, accumulates);
      multiplyTransposed(second, weights + (kMoeBoxBytes >> 4) + 2 * k, x + 2 * k, accumulates);
    }
    commitProducts();
    waitProducts<1>();
    if (step > 0) release();
  }
  waitProducts<0>();
}

// A warpgroup's sums on their way out, [assignment][weight row]: as a thread has them, they would go one by
// one to rows far apart.
constexpr int kMoeStagedRows = 2 * kMoeBoxRows;
constexpr int kMoeStagedStride = kMoeStagedRows + 4;  // keeps the writes of a warp off each other's banks
constexpr int kMoeStoreWidth = 4;

template <int kAssignments>
__device__ __forceinline__ void stageMoeSums(const MoeHopperSums<kAssignments>& sums, int numTaken,
                                             float* staged) {
  const int lane = threadIdx.x % kWarpSize;
  float* own = staged + lane % 4 * 2 * kMoeStagedStride +
               threadIdx.x % kWarpgroupThreads / kWarpSize * 16 + lane / 4;
#pragma unroll
  for (int column = 0; column < kAssignments / 8; ++column) {
    if (column * 8 >= numTaken) break;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      own[(column * 8 + i % 2) * kMoeStagedStride + i / 4 * kMoeBoxRows + i / 2 % 2 * 8] =
          sums[i / 4][column][i % 4];
    }
  }
}

// Adds the biases of four weight rows from `row` on, if there are any.
__device__ __forceinline__ void addMoeBiases(float (&values)[kMoeStoreWidth], const float* biases,
                                             long long row) {
  if (biases == nullptr) return;
  float added[kMoeStoreWidth];
  loadFloats<float, kMoeStoreWidth>(biases + row, added);
#pragma unroll
  for (int i = 0; i < kMoeStoreWidth; ++i) values[i] += added[i];
}

// Makes activations or products of the warpgroup's staged sums. firstColumn is its first of the output.
template <int kAssignments, bool kIsGated>
__device__ __forceinline__ void storeMoeRows(const MoeBf16Params& p, int expert,
                                             int firstColumn, const int (&assignments)[kAssignments],
                                             int numTaken, const float* staged) {
  constexpr int kRowThreads = (kIsGated ? kMoeBoxRows : kMoeStagedRows) / kMoeStoreWidth;
  const int thread = threadIdx.x % kWarpgroupThreads, place = thread % kRowThreads * kMoeStoreWidth;
  const int numColumns = kIsGated ? p.inner : p.hidden, column = firstColumn + place;
  if (column >= numColumns) return;
  Bf16* out = (kIsGated ? p.activations : p.products) + column;
#pragma unroll 2
  for (int row = thread / kRowThreads; row < numTaken; row += kWarpgroupThreads / kRowThreads) {
    const float* sums = staged + row * kMoeStagedStride + place;
    float values[kMoeStoreWidth];
    loadFloats<float, kMoeStoreWidth>(sums, values);
    if (kIsGated) {
      float ups[kMoeStoreWidth];
      loadFloats<float, kMoeStoreWidth>(sums + kMoeBoxRows, ups);
      const long long gateRow = 2ll * expert * p.inner + column;
      addMoeBiases(values, p.gateUpBias, gateRow);
      addMoeBiases(ups, p.gateUpBias, gateRow + p.inner);
#pragma unroll
      for (int i = 0; i < kMoeStoreWidth; ++i) values[i] = activate(values[i], p.activation) * ups[i];
    } else {
      addMoeBiases(values, p.downBias, static_cast<long long>(expert) * p.hidden + column);
    }
    storeFloats<Bf16, kMoeStoreWidth>(out + static_cast<long long>(assignments[row]) * numColumns, values);
  }
}

// A computing warpgroup.
template <int kAssignments, bool kIsGated>
__device__ __forceinline__ void computeMoeTile(const MoeBf16Params& p, int expert,
                                               const int (&assignments)[kAssignments], int numTaken,
                                               char* memory,
                                               MoeRing<MoeHopperShape<kAssignments>::kStages>& ring) {
  const int warpgroup = threadIdx.x / kWarpgroupThreads - 1;
  const int numSteps = (kIsGated ? p.hidden : p.inner) / kMoeStepColumns;
  MoeHopperSums<kAssignments> sums;
  if (numTaken > kAssignments / 2 || kAssignments == 64) {
    multiplyMoeSteps<kAssignments, kAssignments>(sums, numSteps, warpgroup, sharedAddress(memory), ring);
  } else {
    multiplyMoeSteps<kAssignments, 64>(sums, numSteps, warpgroup, sharedAddress(memory), ring);
  }
  waitNamedBarrier(kMoeTilesBarrier, 2 * kWarpgroupThreads);  // nobody needs the ring any more
  float* staged = reinterpret_cast<float*>(memory) + warpgroup * kAssignments * kMoeStagedStride;
  stageMoeSums<kAssignments>(sums, numTaken, staged);
  waitNamedBarrier(kMoeRowsBarrier + warpgroup, kWarpgroupThreads);
  const int firstColumn = (2 * blockIdx.x + warpgroup) * (kIsGated ? kMoeBoxRows : kMoeStagedRows);
  storeMoeRows<kAssignments, kIsGated>(p, expert, firstColumn, assignments, numTaken, staged);
}

// Grid (blocks of 256 weight rows of an expert, assignment tiles). Dynamic shared memory:
// Shape::kSharedBytes.
template <int kAssignments, bool kIsGated>
__global__ void __launch_bounds__(kMoeHopperThreads, 1)
    moeHopperKernel(const __grid_constant__ MoeHopperParams params) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = MoeHopperShape<kAssignments>;
  extern __shared__ __align__(128) char memory[];
  __shared__ MoeRing<Shape::kStages> ring;
  __shared__ int assignments[kAssignments];
  releaseNext();
  if (threadIdx.x == 0) {
    prefetchTensorMap(&params.weightMap);
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      initBarrier(sharedAddress(&ring.full[stage]), kWarpgroupThreads + kMoeWeightBoxes);
      initBarrier(sharedAddress(&ring.empty[stage]), 2 * kWarpgroupThreads / kWarpSize);
    }
    publishBarriers();
  }
  waitForPrevious();
  const auto& p = params.p;
  const int expert = p.tileExperts[blockIdx.y];
  if (expert < 0) return;
  int own = -1;
  if (threadIdx.x < kAssignments) {
    own = assignments[threadIdx.x] = p.assignments[blockIdx.y * kAssignments + threadIdx.x];
  }
  const int numTaken = __syncthreads_count(own >= 0);
  char* tiles = memory + (-sharedAddress(memory) & (kSwizzleAlignment - 1));
  if (threadIdx.x < kWarpgroupThreads) {
    lowerRegisters<kMoeCopyingRegisters>();
    copyMoeSteps<kAssignments, kIsGated>(params, expert, assignments, sharedAddress(tiles), ring);
  } else {
    raiseRegisters<kMoeComputingRegisters>();
    computeMoeTile<kAssignments, kIsGated>(p, expert, assignments, numTaken, tiles, ring);
  }
#endif
}
