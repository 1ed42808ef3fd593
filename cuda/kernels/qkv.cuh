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

// Normalises the warp's head in shared memory.
__device__ __forceinline__ void normaliseHead(float* head, int dim, const float* weight, float eps,
                                              float offset) {
  float squares = 0.0f;
  for (int i = threadIdx.x % kWarpSize; i < dim; i += kWarpSize) squares += head[i] * head[i];
  const float scale = rsqrtf(warpSum(squares) / static_cast<float>(dim) + eps);
  for (int i = threadIdx.x % kWarpSize; i < dim; i += kWarpSize) head[i] *= scale * (weight[i] + offset);
}

// Rotates the first 2 * pairs dimensions of the warp's head.
__device__ __forceinline__ void rotateHead(float* head, int pairs, int interleaved, const float* cosSin) {
  for (int pair = threadIdx.x % kWarpSize; pair < pairs; pair += kWarpSize) {
    const int first = interleaved ? 2 * pair : pair, second = interleaved ? 2 * pair + 1 : pair + pairs;
    const float cosine = cosSin[2 * pair], sine = cosSin[2 * pair + 1];
    const float a = head[first], b = head[second];
    head[first] = a * cosine - b * sine;
    head[second] = b * cosine + a * sine;
  }
}

template <typename TOut>
__device__ __forceinline__ void storeHead(TOut* out, const float* head, int dim) {
  for (int i = threadIdx.x % kWarpSize; i < dim; i += kWarpSize) out[i] = fromFloat<TOut>(head[i]);
}

template <typename T, typename TKv>
__global__ void qkvKernel(const __grid_constant__ QkvParams<T, TKv> p) {
  __shared__ float heads[kQkvWarps][kQkvMaxDim];
  releaseNext();
  waitForPrevious();
  float* head = heads[threadIdx.x / kWarpSize];
  const int row = blockIdx.x;
  const int index = blockIdx.y * kQkvWarps + threadIdx.x / kWarpSize;  // q heads, then k heads, then v heads
  if (index >= p.numQHeads + 2 * p.numKvHeads) return;
  const bool isQ = index < p.numQHeads, isV = index >= p.numQHeads + p.numKvHeads;
  const int dim = isV ? p.vHeadDim : p.headDim;
  const int vFirst = p.numQHeads + p.numKvHeads;
  const int offset = isV ? vFirst * p.headDim + (index - vFirst) * dim : index * dim;

  const int location = isQ || p.kCache == nullptr ? -1 : p.locations[row];
  if (!isQ && location < 0) return;
  const T* source = p.qkv + row * p.qkvStride + offset;
  for (int i = threadIdx.x % kWarpSize; i < dim; i += kWarpSize) head[i] = toFloat(source[i]);
  __syncwarp();
  const float* norm = isQ ? p.qNorm : p.kNorm;
  if (!isV && norm != nullptr) normaliseHead(head, dim, norm, p.eps, p.normWeightOffset);
  __syncwarp();
  if (!isV && p.cosSin != nullptr) {
    rotateHead(head, p.pairs, p.interleaved, p.cosSin + static_cast<long long>(row) * p.pairs * 2);
  }
  __syncwarp();
  if (isQ) {
    storeHead(p.qOut + row * p.qOutStride + offset, head, dim);
    return;
  }
  const long long page = location / p.pageSize;
  char* cache = isV ? p.vCache + page * p.vPageStrideBytes : p.kCache + page * p.kPageStrideBytes;
  const int kvHead = index - (isV ? vFirst : p.numQHeads);
  const long long cacheRow = static_cast<long long>(location % p.pageSize) * p.numKvHeads + kvHead;
  storeHead(reinterpret_cast<TKv*>(cache) + cacheRow * dim, head, dim);
}
