// Joins the splits of paged attention: the softmax-weighted mean of their outputs, with the sink if there is
// one.
//   partialOutputs, partialStats  as in attention-params.cuh  f32
//   out                           [rows, numQHeads * vHeadDim]  T, with a stride
// One warp a (token, query head); grid (heads / 4, tokens, sequences). Bound: latency; it reads what the L2
// still holds.
#pragma once
#include "attention-params.cuh"

constexpr int kMergeWarps = 4;

template <typename T, int kMaxDim>
__global__ void attentionMergeKernel(const __grid_constant__ AttentionParams p) {
  const int head = blockIdx.x * kMergeWarps + threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int token = blockIdx.y, seq = blockIdx.z;
  releaseNext();
  waitForPrevious();
  const SequenceQueries queries = queriesOf(p, seq);
  if (head >= p.numQHeads || token >= queries.numTokens) return;
  const int tile = (token * p.group + head % p.group) / p.tileRows;
  const int numSplits = numActiveSplits(p, visibleKeys(p, queries, tile));

  float maximum = -kInfinity, sum = 0.0f, output[kMaxDim / kWarpSize] = {};
  for (int begin = 0; begin < numSplits; begin += kWarpSize) {  // a split a lane for the weights
    float splitMaximum = -kInfinity, splitSum = 0.0f;
    if (begin + lane < numSplits) {
      const long long index = partialIndex(p, begin + lane, seq, token, head);
      splitMaximum = p.partialStats[2 * index];
      splitSum = p.partialStats[2 * index + 1];
    }
    const float largest = fmaxf(maximum, warpMax(splitMaximum)),
                base = largest == -kInfinity ? 0.0f : largest;
    const float rescale = exp2f(maximum - base), weight = exp2f(splitMaximum - base);
    maximum = largest;
    sum = sum * rescale + warpSum(weight * splitSum);
#pragma unroll
    for (int i = 0; i < kMaxDim / kWarpSize; ++i) output[i] *= rescale;
    const int count = min(numSplits - begin, kWarpSize);
#pragma unroll 4
    for (int split = 0; split < count; ++split) {
      const float splitWeight = __shfl_sync(kFullWarp, weight, split);
      const float* values = p.partialOutputs + partialIndex(p, begin + split, seq, token, head) * p.vHeadDim;
#pragma unroll
      for (int i = 0; i < kMaxDim / kWarpSize; ++i) {
        const int dim = i * kWarpSize + lane;
        if (dim < p.vHeadDim) output[i] += splitWeight * values[dim];
      }
    }
  }

  const float scale = outputScale(p, head, maximum, sum);
  T* out = static_cast<T*>(p.out) + (queries.firstRow + token) * p.outStride + head * p.vHeadDim;
#pragma unroll
  for (int i = 0; i < kMaxDim / kWarpSize; ++i) {
    const int dim = i * kWarpSize + lane;
    if (dim < p.vHeadDim) out[dim] = fromFloat<T>(output[i] * scale);
  }
}
