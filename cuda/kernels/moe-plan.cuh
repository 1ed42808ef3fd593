// Groups (row, rank) assignments by expert into tiles of `tileRows`, for the grouped products.
//   ids          [rows * topK]          int32 expert of each assignment
//   sliceCounts  [slices, numExperts]   int32: how often each expert occurs in a slice of the ids
//   tileExperts  [maxTiles]             int32, -1 = unused
//   assignments  [maxTiles * tileRows]  int32, -1 = padding; one expert's assignments fill consecutive tiles
// One block a slice; many assignments are counted by a kernel before. Slots within an expert are handed out
// by atomics: the order varies, no result depends on it. Nobody computes the products of ids that name no
// expert.
#pragma once
#include "moe-route.cuh"

constexpr int kMoePlanThreads = 1024;
constexpr int kMoeSliceAssignments = 4096, kMoeMaxSlices = 64;

struct MoePlanParams {
  const int* ids;
  int* sliceCounts;
  int* tileExperts;
  int* assignments;
  int numAssignments, numExperts, maxTiles, tileRows;
};

// Turns counts into the first slot of each expert, tiles whole. The first block fills tileExperts. Called by
// the first warp.
__device__ __forceinline__ void placeExperts(const MoePlanParams& p, const int* counts, int* cursors) {
  const int lane = threadIdx.x;
  int firstTile = 0;
  for (int base = 0; base < p.numExperts; base += kWarpSize) {
    const int expert = base + lane;
    const int tiles = expert < p.numExperts ? (counts[expert] + p.tileRows - 1) / p.tileRows : 0;
    int end = tiles;
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
      const int before = __shfl_up_sync(kFullWarp, end, distance);
      if (lane >= distance) end += before;
    }
    const int first = firstTile + end - tiles;
    if (expert < p.numExperts) cursors[expert] = first * p.tileRows;
    for (int tile = first; blockIdx.x == 0 && tile < first + tiles; ++tile) p.tileExperts[tile] = expert;
    firstTile += __shfl_sync(kFullWarp, end, kWarpSize - 1);
  }
  if (blockIdx.x != 0) return;
  for (int tile = firstTile + lane; tile < p.maxTiles; tile += kWarpSize) p.tileExperts[tile] = -1;
}

// Hands every (assignment, expert) of the block's slice to `visit`, several loads at a time.
template <typename Visitor>
__device__ __forceinline__ void visitSlice(const MoePlanParams& p, Visitor visit) {
  constexpr int kAtOnce = kMoeSliceAssignments / kMoePlanThreads;
  const int first = blockIdx.x * kMoePlanThreads + threadIdx.x, stride = gridDim.x * kMoePlanThreads;
  for (int base = first; base < p.numAssignments; base += kAtOnce * stride) {
    int experts[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int assignment = base + i * stride;
      experts[i] = assignment < p.numAssignments ? p.ids[assignment] : -1;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (experts[i] >= 0 && experts[i] < p.numExperts) visit(base + i * stride, experts[i]);
    }
  }
}

__device__ __forceinline__ void countSlice(const MoePlanParams& p, int* counts) {
  for (int i = threadIdx.x; i < p.numExperts; i += kMoePlanThreads) counts[i] = 0;
  __syncthreads();
  visitSlice(p, [&](int, int expert) { atomicAdd(&counts[expert], 1); });
  __syncthreads();
}

__global__ void __launch_bounds__(kMoePlanThreads) moeCountKernel(const __grid_constant__ MoePlanParams p) {
  __shared__ int counts[kRouteMaxExperts];
  releaseNext();
  waitForPrevious();
  countSlice(p, counts);
  int* slice = p.sliceCounts + blockIdx.x * p.numExperts;
  for (int i = threadIdx.x; i < p.numExperts; i += kMoePlanThreads) slice[i] = counts[i];
}

// Marks what is left of the last tile of each expert. Called by the first block.
__device__ __forceinline__ void padTiles(const MoePlanParams& p, const int* counts, const int* firstSlots) {
  for (int expert = threadIdx.x / kWarpSize; expert < p.numExperts; expert += kMoePlanThreads / kWarpSize) {
    const int count = counts[expert], end = (count + p.tileRows - 1) / p.tileRows * p.tileRows;
    for (int i = count + threadIdx.x % kWarpSize; i < end; i += kWarpSize) {
      p.assignments[firstSlots[expert] + i] = -1;
    }
  }
}

__global__ void __launch_bounds__(kMoePlanThreads) moePlanKernel(const __grid_constant__ MoePlanParams p) {
  __shared__ int counts[kRouteMaxExperts];
  __shared__ int cursors[kRouteMaxExperts];
  releaseNext();
  waitForPrevious();
  if (gridDim.x == 1) countSlice(p, counts);
  // Of an expert, the slices before this one take the first slots.
  int taken = 0;
  if (gridDim.x > 1 && threadIdx.x < p.numExperts) {
    int count = 0;
    for (int slice = 0; slice < gridDim.x; ++slice) {
      if (slice == blockIdx.x) taken = count;
      count += p.sliceCounts[slice * p.numExperts + threadIdx.x];
    }
    counts[threadIdx.x] = count;
  }
  __syncthreads();
  if (threadIdx.x < kWarpSize) placeExperts(p, counts, cursors);
  __syncthreads();
  if (blockIdx.x == 0) padTiles(p, counts, cursors);
  __syncthreads();
  if (threadIdx.x < p.numExperts) cursors[threadIdx.x] += taken;
  __syncthreads();
  visitSlice(p, [&](int assignment, int expert) {
    p.assignments[atomicAdd(&cursors[expert], 1)] = assignment;
  });
}
static_assert(kRouteMaxExperts <= kMoePlanThreads, "a thread an expert");
