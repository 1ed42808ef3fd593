// Floats and (float, id) pairs as integers in the order that selection uses: larger value first, then lower
// id. NaN comes last.
#pragma once
#include "numeric.cuh"

using OrderedKey = unsigned long long;

__device__ __forceinline__ unsigned orderedBits(float value) {
  if (value != value) return 0;
  const unsigned bits = __float_as_uint(value + 0.0f);  // -0 becomes +0: equal values are equal keys
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float fromOrderedBits(unsigned bits) {
  return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

__device__ __forceinline__ OrderedKey orderedKey(float value, int id) {
  return static_cast<OrderedKey>(orderedBits(value)) << 32 | ~static_cast<unsigned>(id);
}

__device__ __forceinline__ int idOf(OrderedKey key) {
  return static_cast<int>(~static_cast<unsigned>(key));
}

__device__ __forceinline__ OrderedKey warpMaxKey(OrderedKey key) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    const OrderedKey other = __shfl_xor_sync(kFullWarp, key, distance);
    key = other > key ? other : key;
  }
  return key;
}

// Largest key of a block of kThreads, known to all of them. `shared` holds kThreads / 32 keys and is free
// again on return.
template <int kThreads>
__device__ __forceinline__ OrderedKey blockMaxKey(OrderedKey key, OrderedKey* shared) {
  const int lane = threadIdx.x % kWarpSize;
  key = warpMaxKey(key);
  if (lane == 0) shared[threadIdx.x / kWarpSize] = key;
  __syncthreads();
  const OrderedKey largest = warpMaxKey(lane < kThreads / kWarpSize ? shared[lane] : 0);
  __syncthreads();
  return largest;
}
