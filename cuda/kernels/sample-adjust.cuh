// First of the sampler: penalties, biases, suppression and mask, in place, a slice of a row a block; then the
// slice's largest logit and whether it holds a NaN. List entries go one to a thread. The mask is applied
// together with the penalties, since a bias cannot lift minus infinity.
#pragma once
#include "sample-params.cuh"

// Repetition over prompt and output first, then frequency and presence over the output.
__device__ __forceinline__ float penalise(const SlotParams& slot, unsigned count, float logit) {
  if (count == 0) return logit;
  logit = logit > 0.0f ? __fdiv_rn(logit, slot.repetitionPenalty) : logit * slot.repetitionPenalty;
  const unsigned times = count & 0x7fffffffu;
  if (times == 0) return logit;
  return __fsub_rn(__fsub_rn(logit, __fmul_rn(slot.frequencyPenalty, static_cast<float>(times))),
                   slot.presencePenalty);
}

__device__ __forceinline__ bool adjustSlice(const SampleParams& p, const SlotParams& slot, int slotIndex,
                                            const Span& slice, float* logits) {
  const unsigned* counts = nullptr;
  if (slot.usesCounts != 0 && p.counts != nullptr)
    counts = p.counts + static_cast<long long>(slotIndex) * p.vocab;
  const unsigned* mask =
      p.mask == nullptr ? nullptr : p.mask + static_cast<long long>(blockIdx.y) * ((p.vocab + 31) / 32);
  if (counts == nullptr && mask == nullptr) return false;
  bool holdsNan = false;
  for (int i = slice.begin + threadIdx.x; i < slice.end; i += kSliceThreads) {
    float logit = logits[i];
    holdsNan |= logit != logit;
    if (counts != nullptr) logit = penalise(slot, counts[i], logit);
    if (mask != nullptr && (mask[i / 32] >> i % 32 & 1) == 0) logit = -kInfinity;
    logits[i] = logit;
  }
  return holdsNan;
}

// The first entry of an id adds all of that id's biases in order: no two threads touch one logit.
__device__ __forceinline__ void addBiases(const SampleParams& p, const SlotParams& slot, int slotIndex,
                                          const Span& slice, float* logits) {
  const long long base = static_cast<long long>(slotIndex) * p.biasCapacity;
  const int* ids = p.biasIds + base;
  const int count = min(slot.numBiases, p.biasCapacity);
  for (int i = threadIdx.x; i < count; i += kSliceThreads) {
    const int id = ids[i];
    if (id < slice.begin || id >= slice.end) continue;
    bool isFirst = true;
    for (int j = 0; j < i; ++j) isFirst &= ids[j] != id;
    if (!isFirst) continue;
    float logit = logits[id];
    for (int j = i; j < count; ++j) {
      if (ids[j] == id) logit += p.biasValues[base + j];
    }
    logits[id] = logit;
  }
}

__device__ __forceinline__ bool suppress(const SampleParams& p, const SlotParams& slot, int slotIndex,
                                         const Span& slice, float* logits) {
  bool holdsNan = false;
  const int* ids = p.suppressedIds + static_cast<long long>(slotIndex) * p.suppressedCapacity;
  const int count =
      p.positions[blockIdx.y] < slot.suppressBelow ? min(slot.numSuppressed, p.suppressedCapacity) : 0;
  for (int i = threadIdx.x; i < count; i += kSliceThreads) {
    const int id = ids[i];
    if (id < slice.begin || id >= slice.end) continue;
    holdsNan |= logits[id] != logits[id];
    logits[id] = -kInfinity;
  }
  return holdsNan;
}

// Grid (slices, rows).
__global__ void __launch_bounds__(kSliceThreads) sampleAdjustKernel(const __grid_constant__ SampleParams p) {
  __shared__ OrderedKey keys[kSliceWarps];
  releaseNext();
  waitForPrevious();
  const int slotIndex = p.slots[blockIdx.y];
  if (slotIndex < 0) return;
  const SlotParams& slot = p.params[slotIndex];
  const Span slice = sliceOf(p, blockIdx.x);
  float* logits = p.logits + blockIdx.y * p.logitsStride;
  bool holdsNan = adjustSlice(p, slot, slotIndex, slice, logits), hasFinite = false;
  __syncthreads();
  addBiases(p, slot, slotIndex, slice, logits);
  __syncthreads();
  holdsNan |= suppress(p, slot, slotIndex, slice, logits);
  __syncthreads();

  OrderedKey best = 0;
#pragma unroll 4
  for (int i = slice.begin + threadIdx.x; i < slice.end; i += kSliceThreads) {
    const float logit = logits[i];
    holdsNan |= logit != logit;
    hasFinite |= fabsf(logit) < kInfinity;
    const OrderedKey key = orderedKey(logit, i);
    best = key > best ? key : best;
  }
  best = blockMaxKey<kSliceThreads>(best, keys);
  const int anyNan = __syncthreads_or(holdsNan), anyFinite = __syncthreads_or(hasFinite);
  if (threadIdx.x == 0) p.summaries[blockIdx.y * p.numSlices + blockIdx.x] = {best, 0, anyNan, anyFinite};
}
