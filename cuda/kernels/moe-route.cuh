// Chooses the experts of each row: the top k logits, ties to the lower expert, in descending order, with
// their weights.
//   logits   [rows, numExperts]  f32
//   ids      [rows, topK]        int32
//   weights  [rows, topK]        f32
// One warp a row; a lane keeps every 32nd logit, k rounds of a warp-wide maximum pick. Bound: latency.
#pragma once
#include "ordered-key.cuh"

constexpr int kRouteWarps = 4;
constexpr int kRouteMaxExperts = 1024;
constexpr int kRoutingSoftmaxTopK = 0;      // GRANARY_SOFTMAX_TOPK
constexpr int kRoutingSoftmaxTopKNorm = 1;  // GRANARY_SOFTMAX_TOPK_NORM
constexpr int kRoutingTopKSoftmax = 2;      // GRANARY_TOPK_SOFTMAX

struct MoeRouteParams {
  const float* logits;
  int* ids;
  float* weights;
  int rows, numExperts, topK, routing;
};

__global__ void moeRouteKernel(const __grid_constant__ MoeRouteParams p) {
  releaseNext();
  waitForPrevious();
  const int row = blockIdx.x * kRouteWarps + threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  if (row >= p.rows) return;
  const float* logits = p.logits + static_cast<long long>(row) * p.numExperts;
  int* ids = p.ids + static_cast<long long>(row) * p.topK;
  float* weights = p.weights + static_cast<long long>(row) * p.topK;

  OrderedKey previous = ~0ull;
  float largest = 0.0f, chosenSum = 0.0f;
  for (int rank = 0; rank < p.topK; ++rank) {
    OrderedKey best = 0;
    for (int expert = lane; expert < p.numExperts; expert += kWarpSize) {
      const OrderedKey key = orderedKey(logits[expert], expert);
      if (key < previous && key > best) best = key;
    }
    previous = warpMaxKey(best);
    const float logit = logits[idOf(previous)];
    if (rank == 0) largest = logit;
    const float weight = expf(logit - largest);
    chosenSum += weight;
    if (lane == 0) ids[rank] = idOf(previous);
    if (lane == 0) weights[rank] = weight;
  }

  float divisor = chosenSum;
  if (p.routing == kRoutingSoftmaxTopK) {
    float sum = 0.0f;
    for (int expert = lane; expert < p.numExperts; expert += kWarpSize) sum += expf(logits[expert] - largest);
    divisor = warpSum(sum);
  }
  __syncwarp();
  for (int rank = lane; rank < p.topK; rank += kWarpSize) weights[rank] /= divisor;
}
