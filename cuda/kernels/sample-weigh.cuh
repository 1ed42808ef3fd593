// Second of the sampler: the weight of every slice's tokens and, where top-k or top-p narrow the row, how
// many tokens lie in each bin of scaled logits, and for top-p about how much they weigh. Greedy rows and rows
// without an answer are passed over.
#pragma once
#include "sample-params.cuh"

// Falls with the value, in steps; exact, so that a bin holds what lies between its edges.
__device__ __forceinline__ int binOf(float scaled) {
  return static_cast<int>(fminf(-scaled * kBinsPerUnit, kSampleBins - 1.0f));
}

// Weight of a token in units of 2^-12 of its bin's upper edge, rounded down: a row of any length sums in 32
// bits.
constexpr float kBinUnits = 4096.0f;

__device__ __forceinline__ unsigned binUnits(float scaled, int bin) {
  return static_cast<unsigned>(expf(scaled + bin / kBinsPerUnit) * kBinUnits);
}

// Grid (slices, rows).
__global__ void __launch_bounds__(kSliceThreads) sampleWeighKernel(const __grid_constant__ SampleParams p) {
  __shared__ unsigned bins[2 * kSampleBins];
  __shared__ Mass masses[kSliceWarps];
  releaseNext();
  waitForPrevious();
  const int slotIndex = p.slots[blockIdx.y];
  if (slotIndex < 0 || isGreedy(p.params[slotIndex])) return;
  const SlotParams slot = p.params[slotIndex];
  const SliceSummary row = summariseRow(p, blockIdx.y);
  if (!isDrawable(row)) return;
  const float largest = largestOf(row);
  const bool counts = isNarrowed(p, slot), weighs = !hasTopK(p, slot);
  static_assert(kSliceThreads == 2 * kSampleBins, "one thread a bin");
  bins[threadIdx.x] = 0;
  __syncthreads();

  const Span slice = sliceOf(p, blockIdx.x);
  const float* logits = p.logits + blockIdx.y * p.logitsStride;
  Mass mass = 0;
#pragma unroll 4
  for (int i = slice.begin + threadIdx.x; i < slice.end; i += kSliceThreads) {
    const float scaled = scaledLogit(slot, logits[i], largest);
    if (weighs) mass += massOf(scaled);
    if (!counts || scaled == -kInfinity) continue;
    const int bin = binOf(scaled);
    atomicAdd(&bins[bin], 1u);
    if (weighs) atomicAdd(&bins[kSampleBins + bin], binUnits(scaled, bin));
  }
  mass = warpMassSum(mass);
  if (threadIdx.x % kWarpSize == 0) masses[threadIdx.x / kWarpSize] = mass;
  __syncthreads();

  const int place = blockIdx.y * p.numSlices + blockIdx.x;
  if (threadIdx.x == 0) {
    mass = 0;
    for (int warp = 0; warp < kSliceWarps; ++warp) mass += masses[warp];
    p.summaries[place].mass = mass;
  }
  if (counts) p.bins[place * 2 * kSampleBins + threadIdx.x] = bins[threadIdx.x];
}
