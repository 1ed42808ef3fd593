// Paged attention on the arithmetic units for every element type: prefill and decode, any head dimension up
// to kMaxDim. 256 are compiled ahead of time.
//   q                [rows, numQHeads * headDim]           T, with a stride
//   kCache, vCache   page-strided rows [pageSize, numKvHeads, dim]  TKv
//   pageTable        [?, tableWidth]                       int32; <= 0 is a hole, never read
//   out              [rows, numQHeads * vHeadDim]          T, or partials for the merge
// One warp a (query token, query head, split): a lane scores a key, then all lanes add up V. Exact f32
// throughout; K and V are read once a query head. This is the path of f32 activations, mixed types and
// unaligned caches, where precision counts and speed does not.
#pragma once
#include "attention-params.cuh"

constexpr int kScalarWarps = 4;

// Product of the warp's query with one key, headDim a multiple of kWidth.
template <typename TKv, int kWidth>
__device__ __forceinline__ float dotKey(const float* query, const TKv* key, int headDim) {
  float sum = 0.0f;
  for (int dim = 0; dim < headDim; dim += kWidth) {
    float values[kWidth];
    loadFloats<TKv, kWidth>(key + dim, values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum = fmaf(query[dim + i], values[i], sum);
  }
  return sum;
}

template <typename TKv, int kMaxDim>
struct ScalarState {
  static constexpr int kDimsPerLane = kMaxDim / kWarpSize;
  float maximum = -kInfinity, sum = 0.0f;
  float output[kDimsPerLane] = {};

  // Takes in up to 32 keys: lane l holds the score of one (-inf: not visible) and its V row.
  __device__ __forceinline__ void add(float score, const TKv* vRow, int vHeadDim) {
    const int lane = threadIdx.x % kWarpSize;
    const float largest = fmaxf(maximum, warpMax(score));
    if (largest == -kInfinity) return;
    const float rescale = exp2f(maximum - largest);
    const float weight = exp2f(score - largest);
    maximum = largest;
    sum = sum * rescale + warpSum(weight);
#pragma unroll
    for (int i = 0; i < kDimsPerLane; ++i) output[i] *= rescale;
    unsigned visible = __ballot_sync(kFullWarp, score != -kInfinity);
    while (visible != 0) {
      const int source = __ffs(visible) - 1;
      visible &= visible - 1;
      const float keyWeight = __shfl_sync(kFullWarp, weight, source);
      const auto* row = reinterpret_cast<const TKv*>(
          __shfl_sync(kFullWarp, reinterpret_cast<unsigned long long>(vRow), source));
#pragma unroll
      for (int i = 0; i < kDimsPerLane; ++i) {
        const int dim = i * kWarpSize + lane;
        if (dim < vHeadDim) output[i] = fmaf(keyWeight, toFloat(row[dim]), output[i]);
      }
    }
  }
};

template <typename T, typename TKv, int kMaxDim>
__device__ __forceinline__ void writeScalar(const AttentionParams& p, const ScalarState<TKv, kMaxDim>& state,
                                            int seq, int token, int head, int row) {
  constexpr int kDimsPerLane = kMaxDim / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const bool isPartial = p.numSplits > 1;
  const long long index = isPartial ? partialIndex(p, blockIdx.x, seq, token, head) : 0;
  const float scale = isPartial ? 1.0f : outputScale(p, head, state.maximum, state.sum);
#pragma unroll
  for (int i = 0; i < kDimsPerLane; ++i) {
    const int dim = i * kWarpSize + lane;
    if (dim >= p.vHeadDim) continue;
    const float value = state.output[i] * scale;
    if (isPartial) {
      p.partialOutputs[index * p.vHeadDim + dim] = value;
    } else {
      static_cast<T*>(p.out)[row * p.outStride + head * p.vHeadDim + dim] = fromFloat<T>(value);
    }
  }
  if (isPartial && lane == 0) {
    p.partialStats[2 * index] = state.maximum;
    p.partialStats[2 * index + 1] = state.sum;
  }
}

// Grid (splits, packed rows of all heads / 4, sequences).
// kWidth is 8 where rows of K are 16-byte aligned, else 1.
template <typename T, typename TKv, int kWidth, int kMaxDim>
__global__ void __launch_bounds__(kScalarWarps* kWarpSize)
    pagedAttentionScalarKernel(const __grid_constant__ AttentionParams p) {
  __shared__ alignas(16) float sharedQueries[kScalarWarps][kMaxDim];
  float* query = sharedQueries[threadIdx.x / kWarpSize];
  const int lane = threadIdx.x % kWarpSize, seq = blockIdx.z;
  const int packed = blockIdx.y * kScalarWarps + threadIdx.x / kWarpSize;
  const int token = packed / p.numQHeads, head = packed % p.numQHeads, kvHead = head / p.group;
  const SequenceQueries queries = queriesOf(p, seq);
  if (token >= queries.numTokens) return;
  const int row = queries.firstRow + token, position = queries.firstPosition + token;
  const KeyRange range =
      rangeOfSplit(p, visibleKeys(p, queries, token * p.group + head % p.group), blockIdx.x);
  if (p.numSplits > 1 && range.begin == range.end) return;

  const T* q = static_cast<const T*>(p.q) + row * p.qStride + head * p.headDim;
  for (int dim = lane; dim < p.headDim; dim += kWarpSize) query[dim] = toFloat(q[dim]);
  __syncwarp();

  const int* table = p.pageTable + static_cast<long long>(p.tableRows[seq]) * p.tableWidth;
  const int firstKey = firstKeyOf(p, position);
  ScalarState<TKv, kMaxDim> state;
  for (int base = range.begin; base < range.end; base += kWarpSize) {
    const int key = base + lane;
    int rowInPage;
    const long long page = pageOf(p, table, key, range.end, rowInPage);
    const long long cacheRow = static_cast<long long>(rowInPage) * p.numKvHeads + kvHead;
    const bool isVisible = page > 0 && key >= firstKey;
    const auto* kRow =
        reinterpret_cast<const TKv*>(p.kCache + page * p.kPageStrideBytes) + cacheRow * p.headDim;
    const auto* vRow =
        reinterpret_cast<const TKv*>(p.vCache + page * p.vPageStrideBytes) + cacheRow * p.vHeadDim;
    const float score = isVisible
                            ? scoreInBase2(dotKey<TKv, kWidth>(query, kRow, p.headDim), p.scale, p.softcap)
                            : -kInfinity;
    state.add(score, vRow, p.vHeadDim);
  }
  writeScalar<T, TKv, kMaxDim>(p, state, seq, token, head, row);
}
