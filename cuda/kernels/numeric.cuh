// Scalar types, conversions, wide accesses and reductions of the device code.
// Device sources include nothing but each other, so that NVRTC can compile them as embedded text on a machine
// without a toolkit: 16-bit floats are integers in a struct, and conversions are inline PTX.
#pragma once

struct Bf16 {
  unsigned short bits;
};
struct F16 {
  unsigned short bits;
};

constexpr int kWarpSize = 32;
constexpr unsigned kFullWarp = 0xffffffffu;
constexpr float kLog2E = 1.4426950408889634f;
constexpr float kInfinity = __builtin_bit_cast(float, 0x7f800000u);

// ---- conversions --------------------------------------------------------------------------------------

__device__ __forceinline__ float toFloat(float value) {
  return value;
}
__device__ __forceinline__ float toFloat(Bf16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
__device__ __forceinline__ float toFloat(F16 value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}

template <typename T>
__device__ __forceinline__ T fromFloat(float value);
template <>
__device__ __forceinline__ float fromFloat<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ Bf16 fromFloat<Bf16>(float value) {
  Bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

// Two floats as a register of two bf16, `low` in the low half.
__device__ __forceinline__ unsigned packBf16(float low, float high) {
  unsigned result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

// 2^x by the special function unit: 2 ulp, 0 for -inf.
__device__ __forceinline__ float exp2Fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// ---- overlap of consecutive kernels -------------------------------------------------------------------
// A kernel launched with `launchEarly` may start while the one before it still runs. It must call
// waitForPrevious in every thread before it touches anything that another kernel writes or reads, and before
// it returns. Constants (weights) may be read earlier; past the L1 cache, so may what the one before had
// waited for when it called releaseNext. Ampere starts kernels one after another.

// Lets the next kernel start as soon as every block of this one has called it.
__device__ __forceinline__ void releaseNext() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Returns when everything launched before has finished and its writes are visible.
__device__ __forceinline__ void waitForPrevious() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- wide accesses ------------------------------------------------------------------------------------

// kWidth neighbouring elements, moved in accesses of up to 16 bytes.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Pack {
  T values[kWidth];
};

template <typename T, int kWidth>
__device__ __forceinline__ void loadFloats(const T* source, float (&values)[kWidth]) {
  const auto pack = *reinterpret_cast<const Pack<T, kWidth>*>(source);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values[i] = toFloat(pack.values[i]);
}

template <typename T, int kWidth>
__device__ __forceinline__ void storeFloats(T* destination, const float (&values)[kWidth]) {
  Pack<T, kWidth> pack;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) pack.values[i] = fromFloat<T>(values[i]);
  *reinterpret_cast<Pack<T, kWidth>*>(destination) = pack;
}

// ---- reductions ---------------------------------------------------------------------------------------

__device__ __forceinline__ float warpSum(float value) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, distance);
  }
  return value;
}

__device__ __forceinline__ float warpMax(float value) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kFullWarp, value, distance));
  }
  return value;
}

// Sum over a block of kThreads, known to all of them. `shared` holds kThreads / 32 floats and is free again
// on return.
template <int kThreads>
__device__ __forceinline__ float blockSum(float value, float* shared) {
  constexpr int kWarps = kThreads / kWarpSize;
  value = warpSum(value);
  if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) total += shared[warp];
  __syncthreads();
  return total;
}

template <int kThreads>
__device__ __forceinline__ float blockMax(float value, float* shared) {
  constexpr int kWarps = kThreads / kWarpSize;
  value = warpMax(value);
  if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  float largest = shared[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) largest = fmaxf(largest, shared[warp]);
  __syncthreads();
  return largest;
}
