// The experts' products for few rows, bf16 by bf16: the weights of the experts in use stream through once for
// every eight assignments, at the card's read rate (skinny-product.cuh). Shapes as in moe-experts.cuh; hidden
// and inner are multiples of 64, rows 16-byte aligned. Instead of a plan every block looks through the ids,
// at most 32, for those it takes: up to eight assignments of one expert.
// Bound: HBM, bytes = the weights of the experts in use.
#pragma once
#include "moe-experts.cuh"
#include "skinny-product.cuh"

constexpr int kMoeSkinnyMaxAssignments = kWarpSize;

// Finds what the block of assignment `place` takes: if `place` comes first, ninth, ... among its expert's
// assignments, it and the seven behind it; `taken` gets them, -1 behind the last. Returns their expert, or -1
// where they belong to another block. For the whole block.
__device__ __forceinline__ int takeAssignments(const int* ids, int numAssignments, int place,
                                               int (&taken)[kXTileRows]) {
  const int lane = threadIdx.x % kWarpSize, expert = __ldcg(ids + place);
  if (threadIdx.x < kXTileRows) taken[threadIdx.x] = -1;
  const bool isOurs = lane < numAssignments && __ldcg(ids + lane) == expert;
  const unsigned ours = __ballot_sync(kFullWarp, isOurs);
  const auto rankOf = [&](int assignment) { return __popc(ours & ((1u << assignment) - 1)); };
  const int first = rankOf(place), slot = rankOf(lane) - first;
  if (first % kXTileRows != 0) return -1;
  __syncthreads();
  if (threadIdx.x < kWarpSize && isOurs && slot >= 0 && slot < kXTileRows) taken[slot] = lane;
  __syncthreads();
  return expert;
}

// Gates and ups with kIsGated, else down. Grid (blocks of 16 * kWeightTiles weight rows, assignments).
template <int kWeightTiles, int kStages, bool kIsGated>
__global__ void __launch_bounds__(kSkinnyThreads)
    moeSkinnyKernel(const __grid_constant__ MoeBf16Params p) {
  extern __shared__ float shared[];
  __shared__ int taken[kXTileRows];
  // The product of gates and ups lets the next kernel begin once the ids are there: that one need not wait
  // for it to find its weights.
  if (kIsGated) waitForPrevious();
  releaseNext();
  const int expert = takeAssignments(p.ids, p.rows * p.topK, blockIdx.y, taken);
  if (expert < 0 || expert >= p.numExperts) {
    if (!kIsGated) waitForPrevious();
    return;
  }
  const auto matrixOf = [&](const Bf16* weights, const float* biases, int rows, int inColumns,
                            int outColumns) {
    const long long firstRow = static_cast<long long>(expert) * rows;
    return SkinnyWeight{weights + firstRow * inColumns, biases == nullptr ? nullptr : biases + firstRow,
                        inColumns, outColumns, p.activation};
  };
  const SkinnyWeight matrix = kIsGated ? matrixOf(p.gateUp, p.gateUpBias, 2 * p.inner, p.hidden, p.inner)
                                       : matrixOf(p.down, p.downBias, p.hidden, p.inner, p.hidden);
  const int own = taken[threadIdx.x % kWarpSize / 4];
  const Bf16* x = own < 0 ? nullptr : moeInput<kIsGated>(p, own);
  multiplySkinnyBlock<kWeightTiles, 1, kStages, kIsGated>(
      matrix, shared,
      [] {
        if (!kIsGated) waitForPrevious();
      },
      [&](int) { return x; });
  storeSkinnyBlock<kWeightTiles, 1, kIsGated>(
      matrix, shared, kXTileRows, [&](int row, int column, float value) {
        const long long assignment = taken[row];
        if (assignment < 0) return;
        if (kIsGated) {
          p.activations[assignment * p.inner + column] = fromFloat<Bf16>(value);
        } else {
          p.products[assignment * p.hidden + column] = fromFloat<Bf16>(value);
        }
      });
}
