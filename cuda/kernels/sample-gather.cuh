// Third of the sampler, for rows with top-k or top-p: from the bins follows a value above which all tokens
// lie that can be kept; they are gathered in the order of their ids, each slice behind the ones before it.
#pragma once
#include "sample-weigh.cuh"

// What a slice has to know about its row.
struct GatherPlan {
  int lastBin;        // tokens up to this bin are candidates
  int numCandidates;  // of the row
  int offset;         // of the slice's first one
};

// Inclusive sum over the lanes of a warp.
template <typename T>
__device__ __forceinline__ T warpScan(T value) {
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const T earlier = __shfl_up_sync(kFullWarp, value, distance);
    if (threadIdx.x % kWarpSize >= distance) value += earlier;
  }
  return value;
}

// Mass that the tokens of a bin have at least, from their weights in its units.
__device__ __forceinline__ Mass leastMass(int bin, Mass units) {
  constexpr double kMassOfOne = 1099511627776.0;
  constexpr double kMargin = 1.0 - 1.0 / 32768;  // the approximate exponential may be off by a little
  const double edge = static_cast<double>(expf(-bin / kBinsPerUnit)) * kMassOfOne / kBinUnits * kMargin;
  return bin == kSampleBins - 1 ? 0 : static_cast<Mass>(static_cast<double>(units) * edge);
}

// Tokens of each bin, in the row and in the slices before this one, and what the row's weigh.
struct BinSums {
  int totals[kSampleBins], befores[kSampleBins];
  Mass units[kSampleBins];
};

// By the first warp.
__device__ __forceinline__ GatherPlan planGather(const SampleParams& p, const SlotParams& slot, Mass rowMass,
                                                 const BinSums& sums) {
  constexpr int kBinsPerLane = kSampleBins / kWarpSize;
  const int lane = threadIdx.x % kWarpSize;
  const bool byCount = hasTopK(p, slot);  // top-p then chooses among those
  const Mass target = byCount ? slot.topK : topPTarget(slot.topP, rowMass);
  Mass measures[kBinsPerLane], own = 0;
#pragma unroll
  for (int i = 0; i < kBinsPerLane; ++i) {
    const int bin = lane * kBinsPerLane + i;
    measures[i] = byCount ? sums.totals[bin] : leastMass(bin, sums.units[bin]);
    own += measures[i];
  }
  Mass reached = warpScan(own) - own;
  int lastBin = kSampleBins - 1;
#pragma unroll
  for (int i = 0; i < kBinsPerLane; ++i) {
    reached += measures[i];
    if (reached >= target) lastBin = min(lastBin, lane * kBinsPerLane + i);
  }
  lastBin = __reduce_min_sync(kFullWarp, lastBin);
  int count = 0, before = 0;
  for (int bin = lane; bin <= lastBin; bin += kWarpSize) {
    count += sums.totals[bin];
    before += sums.befores[bin];
  }
  return GatherPlan{lastBin, __reduce_add_sync(kFullWarp, count), __reduce_add_sync(kFullWarp, before)};
}

// Writes the candidates of the slice, which its warps share out in order.
__device__ __forceinline__ void gatherSlice(const SampleParams& p, const SlotParams& slot, float largest,
                                            const GatherPlan& plan, int (&counts)[kSliceWarps]) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const Span slice = sliceOf(p, blockIdx.x);
  const float* logits = p.logits + blockIdx.y * p.logitsStride;
  const int size = ((slice.end - slice.begin + kSliceThreads - 1) / kSliceThreads) * kWarpSize;
  const int begin = slice.begin + warp * size, end = min(begin + size, slice.end);
  const auto isCandidate = [&](float scaled) { return scaled > -kInfinity && binOf(scaled) <= plan.lastBin; };
  int count = 0;
  for (int i = begin + lane; i < end; i += kWarpSize) {
    count += isCandidate(scaledLogit(slot, logits[i], largest));
  }
  count = __reduce_add_sync(kFullWarp, count);
  if (lane == 0) counts[warp] = count;
  __syncthreads();
  int at = blockIdx.y * kMaxCandidates + plan.offset;
  for (int i = 0; i < warp; ++i) at += counts[i];
  for (int base = begin; count > 0 && base < end; base += kWarpSize) {
    const int i = base + lane;
    const float scaled = i < end ? scaledLogit(slot, logits[i], largest) : -kInfinity;
    const bool isTaken = isCandidate(scaled);
    const unsigned taken = __ballot_sync(kFullWarp, isTaken);
    const int own = at + __popc(taken & ((1u << lane) - 1));
    if (isTaken) p.candidates[own] = scaled;
    if (isTaken) p.candidateIds[own] = i;
    at += __popc(taken);
  }
}

// Grid (slices, rows).
__global__ void __launch_bounds__(kSliceThreads) sampleGatherKernel(const __grid_constant__ SampleParams p) {
  __shared__ BinSums sums;
  __shared__ int counts[kSliceWarps];
  __shared__ GatherPlan plan;
  releaseNext();
  waitForPrevious();
  const int slotIndex = p.slots[blockIdx.y];
  if (slotIndex < 0) return;
  const SlotParams slot = p.params[slotIndex];
  if (isGreedy(slot) || !isNarrowed(p, slot)) return;
  const SliceSummary row = summariseRow(p, blockIdx.y);
  if (!isDrawable(row)) return;
  if (threadIdx.x < kSampleBins) {
    int total = 0, before = 0;
    Mass units = 0;
    for (int slice = 0; slice < p.numSlices; ++slice) {
      const unsigned* bins = p.bins + (blockIdx.y * p.numSlices + slice) * 2 * kSampleBins + threadIdx.x;
      total += bins[0];
      before += slice < blockIdx.x ? bins[0] : 0;
      units += bins[kSampleBins];
    }
    sums.totals[threadIdx.x] = total;
    sums.befores[threadIdx.x] = before;
    sums.units[threadIdx.x] = units;
  }
  __syncthreads();
  if (threadIdx.x < kWarpSize) {
    const GatherPlan made = planGather(p, slot, row.mass, sums);
    if (threadIdx.x == 0) plan = made;
  }
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) p.candidateSets[blockIdx.y] = {plan.numCandidates, plan.lastBin};
  if (plan.numCandidates <= kMaxCandidates) gatherSlice(p, slot, largestOf(row), plan, counts);
}
