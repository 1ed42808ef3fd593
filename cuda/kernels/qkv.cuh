// From a row of projected q, k and v to queries and cache rows: optional RMS norm of each q and k head,
// optional rotation of its first 2 * pairs dimensions, q written to qOut, k and v rounded to the cache's type
// and written at their location.
//   qkv        [rows, q heads * headDim | kv heads * headDim | kv heads * vHeadDim]  T, with a stride
//   qOut       [rows, q heads * headDim]  T, with a stride; may be qkv
//   cosSin     [rows, pairs, 2]           f32
//   locations  [rows]                     int32: page * pageSize + row in the page; negative writes nothing
//   caches     page-strided rows [pageSize, kv heads, dim]  TKv
// One warp a (row, head). Bound: HBM, bytes = rows * heads * dim * (T + T or TKv).
#pragma once
#include "numeric.cuh"

constexpr int kQkvWarps = 4;
constexpr int kQkvMaxDim = 512;

template <typename T, typename TKv>
struct QkvParams {
  const T* qkv;
  T* qOut;
  const float* qNorm;
  const float* kNorm;
  const float* cosSin;
  const int* locations;
  char* kCache;
  char* vCache;
  long long qkvStride, qOutStride, kPageStrideBytes, vPageStrideBytes;
  int numQHeads, numKvHeads, headDim, vHeadDim, pairs, pageSize, interleaved;
  float eps, normWeightOffset;
};

// Rotates the first 2 * pairs dimensions of the warp's head; a lane has the cosines and sines of its pairs.
template <int kPairsPerLane>
__device__ __forceinline__ void rotateHead(float* head, int pairs, int interleaved,
                                           const float (&turns)[kPairsPerLane][2]) {
#pragma unroll
  for (int i = 0; i < kPairsPerLane; ++i) {
    const int pair = i * kWarpSize + static_cast<int>(threadIdx.x) % kWarpSize;
    if (pair >= pairs) break;
    const int first = interleaved ? 2 * pair : pair, second = interleaved ? 2 * pair + 1 : pair + pairs;
    const float a = head[first], b = head[second];
    head[first] = a * turns[i][0] - b * turns[i][1];
    head[second] = b * turns[i][0] + a * turns[i][1];
  }
}

// Dimensions lane, lane + 32, ... of a head, from registers.
template <typename TOut, int kPerLane>
__device__ __forceinline__ void storeHead(TOut* out, const float (&values)[kPerLane], int dim) {
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int at = i * kWarpSize + static_cast<int>(threadIdx.x) % kWarpSize;
    if (at < dim) out[at] = fromFloat<TOut>(values[i]);
  }
}

// kPerLane: dimensions of a head that a lane has, so that a head has up to 32 * kPerLane. All that a head
// needs is asked for at once, and the norm's weight before: one way to memory, not four in turn.
template <typename T, typename TKv, int kPerLane>
__global__ void qkvKernel(const __grid_constant__ QkvParams<T, TKv> p) {
  __shared__ float heads[kQkvWarps][kPerLane * kWarpSize];
  releaseNext();
  float* head = heads[threadIdx.x / kWarpSize];
  const int row = blockIdx.x, lane = threadIdx.x % kWarpSize;
  const int index = blockIdx.y * kQkvWarps + threadIdx.x / kWarpSize;  // q heads, then k heads, then v heads
  const bool isThere = index < p.numQHeads + 2 * p.numKvHeads;
  const bool isQ = index < p.numQHeads, isV = index >= p.numQHeads + p.numKvHeads;
  const int dim = isV ? p.vHeadDim : p.headDim;
  const int vFirst = p.numQHeads + p.numKvHeads;
  const int offset = isV ? vFirst * p.headDim + (index - vFirst) * dim : index * dim;
  const float* norm = isQ ? p.qNorm : isV ? nullptr : p.kNorm;
  const bool isTurned = !isV && p.cosSin != nullptr;

  float weights[kPerLane] = {};
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int at = i * kWarpSize + lane;
    if (norm != nullptr && at < dim) weights[i] = norm[at] + p.normWeightOffset;
  }
  waitForPrevious();
  if (!isThere) return;
  const int location = isQ || p.kCache == nullptr ? -1 : p.locations[row];
  const T* source = p.qkv + row * p.qkvStride + offset;
  float values[kPerLane] = {}, turns[kPerLane / 2][2];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    if (i * kWarpSize + lane < dim) values[i] = toFloat(source[i * kWarpSize + lane]);
  }
#pragma unroll
  for (int i = 0; i < kPerLane / 2; ++i) {
    const int pair = i * kWarpSize + lane;
    if (isTurned && pair < p.pairs)
      loadFloats<float, 2>(p.cosSin + (static_cast<long long>(row) * p.pairs + pair) * 2, turns[i]);
  }
  if (!isQ && location < 0) return;

  if (norm != nullptr) {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) squares += values[i] * values[i];
    const float scale = rsqrtf(warpSum(squares) / static_cast<float>(dim) + p.eps);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) values[i] *= scale * weights[i];
  }
  if (isTurned) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) head[i * kWarpSize + lane] = values[i];
    __syncwarp();
    rotateHead(head, p.pairs, p.interleaved, turns);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) values[i] = head[i * kWarpSize + lane];
  }
  if (isQ) {
    storeHead(p.qOut + row * p.qOutStride + offset, values, dim);
    return;
  }
  const long long page = location / p.pageSize;
  char* cache = isV ? p.vCache + page * p.vPageStrideBytes : p.kCache + page * p.kPageStrideBytes;
  const int kvHead = index - (isV ? vFirst : p.numQHeads);
  const long long cacheRow = static_cast<long long>(location % p.pageSize) * p.numKvHeads + kvHead;
  storeHead(reinterpret_cast<TKv*>(cache) + cacheRow * dim, values, dim);
}
