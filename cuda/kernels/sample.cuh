// Samples one token a row, a function of the row's own logits, parameters and position alone.
//   logits              [rows, vocab] with a stride  f32, changed in place
//   slots, positions    [rows]                       int32; a negative slot is padding
//   params              [numSlots]                   SlotParams
//   counts              [numSlots, vocab]            uint32
//   out, lastTokens     [rows], [numSlots]           int32
// One block a row. The scaled logits (logit - largest) / temperature replace the logits; a warp sums a
// segment of the row, so that the draw walks through one segment only. Bound: L2, four reads of the row
// without top-k and top-p.
#pragma once
#include "philox.cuh"
#include "sample-adjust.cuh"
#include "sample-keep.cuh"

struct SampleShared {
  OrderedKey keys[kSampleWarps];
  Mass masses[kSampleWarps];
  Mass ties[kSampleWarps];
};

// A warp's share of the row: whole multiples of the warp's width, in ascending order.
struct Segment {
  int begin, end;
};

__device__ __forceinline__ Segment segmentOf(int warp, int vocab) {
  const int size = (vocab + kSampleThreads - 1) / kSampleThreads * kWarpSize;
  return Segment{min(warp * size, vocab), min((warp + 1) * size, vocab)};
}

// Replaces logits by (logit - largest) / temperature; what min-p drops becomes minus infinity.
__device__ __forceinline__ void scaleRow(const SampleParams& p, const SlotParams& slot, float* logits,
                                         float largest) {
  const float bound = fminf(slot.minP, 1.0f);
  for (int i = threadIdx.x; i < p.vocab; i += kSampleThreads) {
    float scaled = __fdiv_rn(logits[i] - largest, slot.temperature);
    if (largest == kInfinity) scaled = logits[i] == kInfinity ? 0.0f : -kInfinity;
    logits[i] = slot.minP > 0.0f && expf(scaled) < bound ? -kInfinity : scaled;
  }
  __syncthreads();
}

// Mass above the threshold and number of tokens at it, a segment each, into shared memory.
__device__ __forceinline__ void sumSegments(const SampleParams& p, const float* row, const Threshold& kept,
                                            SampleShared& shared) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const Segment segment = segmentOf(warp, p.vocab);
  Mass mass = 0, ties = 0;
  for (int i = segment.begin + lane; i < segment.end; i += kWarpSize) {
    const unsigned key = orderedBits(row[i]);
    if (key > kept.key) mass += massOf(row[i]);
    ties += key == kept.key;
  }
  mass = warpMassSum(mass);
  ties = warpMassSum(ties);
  if (lane == 0) shared.masses[warp] = mass;
  if (lane == 0) shared.ties[warp] = ties;
  __syncthreads();
}

// First id of the segment whose cumulative mass exceeds `bound`, `before` being the mass and `tieRank` the
// number of threshold tokens ahead of the segment.
__device__ __forceinline__ int walkSegment(const float* row, const Segment& segment, const Threshold& kept,
                                           Mass bound, Mass before, Mass tieRank) {
  const int lane = threadIdx.x % kWarpSize;
  for (int base = segment.begin; base < segment.end; base += kWarpSize) {
    const int i = base + lane;
    const unsigned key = i < segment.end ? orderedBits(row[i]) : 0;
    const unsigned ties = __ballot_sync(kFullWarp, key == kept.key);
    const Mass rank = tieRank + __popc(ties & ((1u << lane) - 1));
    const bool isKept = key > kept.key || (key == kept.key && rank < kept.numTies);
    Mass cumulative = isKept ? massOf(row[i]) : 0;
#pragma unroll
    for (int distance = 1; distance < kWarpSize; distance *= 2) {
      const Mass earlier = __shfl_up_sync(kFullWarp, cumulative, distance);
      if (lane >= distance) cumulative += earlier;
    }
    const unsigned reached = __ballot_sync(kFullWarp, before + cumulative > bound);
    if (reached != 0) return base + __ffs(reached) - 1;
    before += __shfl_sync(kFullWarp, cumulative, kWarpSize - 1);
    tieRank += __popc(ties);
  }
  return -1;
}

// The first token in ascending id order whose cumulative kept mass exceeds u times the total, u = (random +
// 1/2) / 2^32. Called by the first warp.
__device__ __forceinline__ int drawToken(const SampleParams& p, const float* row, const Threshold& kept,
                                         unsigned random, const SampleShared& shared) {
  const Mass unit = kept.numTies > 0 ? massOf(valueOfKey(kept.key)) : 0;
  const auto keptTies = [&](Mass ahead, Mass own) {
    return ahead >= kept.numTies ? 0 : (own < kept.numTies - ahead ? own : kept.numTies - ahead);
  };
  Mass total = 0, ties = 0;
#pragma unroll 1
  for (int warp = 0; warp < kSampleWarps; ++warp) {
    total += shared.masses[warp] + keptTies(ties, shared.ties[warp]) * unit;
    ties += shared.ties[warp];
  }
  // floor(total * (2 * random + 1) / 2^33); a sum exceeds the exact bound if and only if it exceeds its
  // floor.
  const Mass twice = 2ull * random + 1;
  const Mass bound = __umul64hi(total, twice) << 31 | (total * twice) >> 33;
  Mass before = 0;
  ties = 0;
#pragma unroll 1
  for (int warp = 0; warp < kSampleWarps; ++warp) {
    const Mass mass = shared.masses[warp] + keptTies(ties, shared.ties[warp]) * unit;
    if (before + mass > bound) return walkSegment(row, segmentOf(warp, p.vocab), kept, bound, before, ties);
    before += mass;
    ties += shared.ties[warp];
  }
  return -1;
}

__device__ __forceinline__ Threshold keepLikely(const SampleParams& p, const SlotParams& slot,
                                                const float* row, SampleShared& shared) {
  Threshold kept{orderedBits(-kInfinity), 0};
  if (slot.topK > 0 && slot.topK < p.vocab) kept = narrow<false>(p, row, kept, slot.topK, shared.masses);
  if (slot.topP < 1.0f) {
    const Mass total = measureFrom<true>(p, row, 0, kept, shared.masses);
    const double bound = ceil(static_cast<double>(slot.topP) * static_cast<double>(total));
    const Mass target = bound < 1.0 ? 1 : static_cast<Mass>(bound);
    kept = narrow<true>(p, row, kept, target, shared.masses);
  }
  return kept;
}

// The block's row; the result is valid in the first warp.
__device__ __forceinline__ int sampleRow(const SampleParams& p, const SlotParams& slot, int slotIndex,
                                         float* logits, SampleShared& shared) {
  bool holdsNan = adjustLogits(p, slot, slotIndex, logits), hasFinite = false;
  OrderedKey best = 0;
  for (int i = threadIdx.x; i < p.vocab; i += kSampleThreads) {
    const float logit = logits[i];
    holdsNan |= logit != logit;
    hasFinite |= fabsf(logit) < kInfinity;
    const OrderedKey key = orderedKey(logit, i);
    best = key > best ? key : best;
  }
  best = blockMaxKey<kSampleThreads>(best, shared.keys);
  if (__syncthreads_or(holdsNan) || !__syncthreads_or(hasFinite)) return -1;
  if (!(slot.temperature > 0.0f)) return idOf(best);

  scaleRow(p, slot, logits, fromOrderedBits(static_cast<unsigned>(best >> 32)));
  const Threshold kept = keepLikely(p, slot, logits, shared);
  sumSegments(p, logits, kept, shared);
  if (threadIdx.x >= kWarpSize) return -1;
  const auto position = static_cast<unsigned>(p.positions[blockIdx.x]);
  const unsigned random = philox(slot.seedLow, slot.seedHigh, position, slot.choice, p.draw, 0);
  return drawToken(p, logits, kept, random, shared);
}

__global__ void __launch_bounds__(kSampleThreads, 1) sampleKernel(const __grid_constant__ SampleParams p) {
  __shared__ SampleShared shared;
  const int slotIndex = p.slots[blockIdx.x];
  if (slotIndex < 0) return;
  const SlotParams& slot = p.params[slotIndex];
  const int token = sampleRow(p, slot, slotIndex, p.logits + blockIdx.x * p.logitsStride, shared);
  if (threadIdx.x != 0) return;
  p.out[blockIdx.x] = token;
  if (p.lastTokens != nullptr) p.lastTokens[slotIndex] = token;
  const bool counts = slot.usesCounts != 0 && p.counts != nullptr && token >= 0;
  if (counts) p.counts[static_cast<long long>(slotIndex) * p.vocab + token] += 1;
}
