// Joins the splits of paged attention: the softmax-weighted mean of their outputs, with the sink if there is
// one.
//   partialOutputs, partialStats  as in attention-params.cuh  f32
//   out                           [rows, numQHeads * vHeadDim]  T, with a stride
// One warp a (token, query head); grid (heads / 4, tokens, sequences). Bound: latency; it reads what the L2
// still holds.
#pragma once
#include "attention-params.cuh"

constexpr int kMergeWarps = 4;
constexpr int kMergeMaxDim = 256;

template <typename T>
__global__ void attentionMergeKernel(const __grid_constant__ AttentionParams p) {
  const int head = blockIdx.x * kMergeWarps + threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int token = blockIdx.y, seq = blockIdx.z;
  releaseNext();
  waitForPrevious();
  const SequenceQueries queries = queriesOf(p, seq);
  if (head >= p.numQHeads || token >= queries.numTokens) return;
  const int tile = (token * p.group + head % p.group) / p.tileRows;
  const int numSplits = numActiveSplits(p, visibleKeys(p, queries, tile));

  float maximum = -kInfinity;
  for (int split = lane; split < numSplits; split += kWarpSize) {
    maximum = fmaxf(maximum, p.partialStats[2 * partialIndex(p, split, seq, token, head)]);
  }
  maximum = warpMax(maximum);
  float sum = 0.0f, output[kMergeMaxDim / kWarpSize] = {};
  for (int split = 0; split < numSplits; ++split) {
    const long long index = partialIndex(p, split, seq, token, head);
    const float splitMaximum = p.partialStats[2 * index];
    if (splitMaximum == -kInfinity) continue;
    const float weight = exp2f(splitMaximum - maximum);
    sum += weight * p.partialStats[2 * index + 1];
#pragma unroll
    for (int i = 0; i < kMergeMaxDim / kWarpSize; ++i) {
      const int dim = i * kWarpSize + lane;
      if (dim < p.vHeadDim) output[i] += weight * p.partialOutputs[index * p.vHeadDim + dim];
    }
  }

  const float scale = outputScale(p, head, maximum, sum);
  T* out = static_cast<T*>(p.out) + (queries.firstRow + token) * p.outStride + head * p.vHeadDim;
#pragma unroll
  for (int i = 0; i < kMergeMaxDim / kWarpSize; ++i) {
    const int dim = i * kWarpSize + lane;
    if (dim < p.vHeadDim) out[dim] = fromFloat<T>(output[i] * scale);
  }
}
