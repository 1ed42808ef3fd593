// Groups (row, rank) assignments by expert into tiles of 64, for the grouped products.
//   ids          [rows * topK]       int32 expert of each assignment
//   tileExperts  [maxTiles]          int32, -1 = unused
//   assignments  [maxTiles * 64]     int32, -1 = padding; one expert's assignments fill consecutive tiles
// One block. Slots within an expert are handed out by atomics: the order varies, no result depends on it.
#pragma once
#include "moe-route.cuh"
#include "tile-product.cuh"

constexpr int kMoePlanThreads = 1024;

struct MoePlanParams {
  const int* ids;
  int* tileExperts;
  int* assignments;
  int numAssignments, numExperts, maxTiles;
};

// Turns counts into the first slot of each expert, tiles whole; fills tileExperts. Called by the first warp.
__device__ __forceinline__ void placeExperts(const MoePlanParams& p, const int* counts, int* cursors) {
  const int lane = threadIdx.x;
  int firstTile = 0;
  for (int base = 0; base < p.numExperts; base += kWarpSize) {
    const int expert = base + lane;
    const int tiles = expert < p.numExperts ? (counts[expert] + kTileSide - 1) / kTileSide : 0;
    int end = tiles;
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
      const int before = __shfl_up_sync(kFullWarp, end, distance);
      if (lane >= distance) end += before;
    }
    const int first = firstTile + end - tiles;
    if (expert < p.numExperts) cursors[expert] = first * kTileSide;
    for (int tile = first; tile < first + tiles; ++tile) p.tileExperts[tile] = expert;
    firstTile += __shfl_sync(kFullWarp, end, kWarpSize - 1);
  }
  for (int tile = firstTile + lane; tile < p.maxTiles; tile += kWarpSize) p.tileExperts[tile] = -1;
}

__global__ void __launch_bounds__(kMoePlanThreads) moePlanKernel(const __grid_constant__ MoePlanParams p) {
  __shared__ int counts[kRouteMaxExperts];
  __shared__ int cursors[kRouteMaxExperts];
  releaseNext();
  waitForPrevious();
  for (int i = threadIdx.x; i < p.numExperts; i += kMoePlanThreads) counts[i] = 0;
  for (int i = threadIdx.x; i < p.maxTiles * kTileSide; i += kMoePlanThreads) p.assignments[i] = -1;
  __syncthreads();
  for (int i = threadIdx.x; i < p.numAssignments; i += kMoePlanThreads) {
    const int expert = p.ids[i];
    if (expert >= 0 && expert < p.numExperts) atomicAdd(&counts[expert], 1);
  }
  __syncthreads();
  if (threadIdx.x < kWarpSize) placeExperts(p, counts, cursors);
  __syncthreads();
  for (int i = threadIdx.x; i < p.numAssignments; i += kMoePlanThreads) {
    const int expert = p.ids[i];
    if (expert >= 0 && expert < p.numExperts) p.assignments[atomicAdd(&cursors[expert], 1)] = i;
  }
}
