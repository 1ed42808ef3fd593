// Last of the sampler: the token of a row, a function of the row's own logits, parameters and position alone.
// One block a row. Without top-k and top-p it finds the slice that the draw falls into and walks through that
// alone; with them it narrows the candidates, or the whole row where they are too many, and walks through
// those.
#pragma once
#include "philox.cuh"
#include "sample-keep-long.cuh"

// Candidates that one warp narrows by itself.
constexpr int kWarpCandidates = 512;

struct DrawShared {
  Mass masses[kSampleWarps];
  Mass ties[kSampleWarps];
  GatherRoom room;
};

// A warp's share: whole multiples of the warp's width, in ascending order.
__device__ __forceinline__ Span shareOf(int warp, int count) {
  const int size = (count + kSampleThreads - 1) / kSampleThreads * kWarpSize;
  return Span{min(warp * size, count), min((warp + 1) * size, count)};
}

// Mass above the threshold and number of tokens at it, a share each, into shared memory.
template <typename ValueAt>
__device__ __forceinline__ void sumShares(ValueAt valueAt, int count, const Threshold& kept,
                                          DrawShared& shared) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const Span share = shareOf(warp, count);
  Mass mass = 0, ties = 0;
  for (int i = share.begin + lane; i < share.end; i += kWarpSize) {
    const float value = valueAt(i);
    const unsigned key = orderedBits(value);
    if (key > kept.key) mass += massOf(value);
    ties += key == kept.key;
  }
  mass = warpMassSum(mass);
  ties = warpMassSum(ties);
  if (lane == 0) shared.masses[warp] = mass;
  if (lane == 0) shared.ties[warp] = ties;
  __syncthreads();
}

// First place of the share whose cumulative mass exceeds `bound`, `before` being the mass and `tieRank` the
// number of threshold tokens ahead of the share.
template <typename ValueAt>
__device__ __forceinline__ int walkShare(ValueAt valueAt, const Span& share, const Threshold& kept,
                                         Mass bound, Mass before, Mass tieRank) {
  const int lane = threadIdx.x % kWarpSize;
  for (int base = share.begin; base < share.end; base += kWarpSize) {
    const int i = base + lane;
    const float value = i < share.end ? valueAt(i) : 0.0f;
    const unsigned key = i < share.end ? orderedBits(value) : 0;
    const unsigned ties = __ballot_sync(kFullWarp, key == kept.key);
    const Mass rank = tieRank + __popc(ties & ((1u << lane) - 1));
    const bool isKept = key > kept.key || (key == kept.key && rank < kept.numTies);
    Mass cumulative = isKept ? massOf(value) : 0;
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

// floor(total * (2 * random + 1) / 2^33): a sum exceeds u times the total, u = (random + 1/2) / 2^32, if and
// only if it exceeds this.
__device__ __forceinline__ Mass drawBound(Mass total, unsigned random) {
  const Mass twice = 2ull * random + 1;
  return __umul64hi(total, twice) << 31 | (total * twice) >> 33;
}

__device__ __forceinline__ Mass keptTies(const Threshold& kept, Mass ahead, Mass own) {
  return ahead >= kept.numTies ? 0 : (own < kept.numTies - ahead ? own : kept.numTies - ahead);
}

// The first place whose cumulative kept mass exceeds `bound`. Known to the first warp, after sumShares.
template <typename ValueAt>
__device__ __forceinline__ int findPlace(ValueAt valueAt, int count, const Threshold& kept, Mass bound,
                                         const DrawShared& shared) {
  const Mass unit = kept.numTies > 0 ? massOf(fromOrderedBits(kept.key)) : 0;
  Mass before = 0, ties = 0;
#pragma unroll 1
  for (int warp = 0; warp < kSampleWarps; ++warp) {
    const Mass mass = shared.masses[warp] + keptTies(kept, ties, shared.ties[warp]) * unit;
    if (before + mass > bound) return walkShare(valueAt, shareOf(warp, count), kept, bound, before, ties);
    before += mass;
    ties += shared.ties[warp];
  }
  return -1;
}

// Kept mass of all shares, by the first warp.
__device__ __forceinline__ Mass totalOf(const Threshold& kept, const DrawShared& shared) {
  const Mass unit = kept.numTies > 0 ? massOf(fromOrderedBits(kept.key)) : 0;
  Mass total = 0, ties = 0;
#pragma unroll 1
  for (int warp = 0; warp < kSampleWarps; ++warp) {
    total += shared.masses[warp] + keptTies(kept, ties, shared.ties[warp]) * unit;
    ties += shared.ties[warp];
  }
  return total;
}

// Draws from all tokens, through the one slice that the draw falls into.
__device__ __forceinline__ int drawPlain(const SampleParams& p, const SlotParams& slot,
                                         const SliceSummary& row, const float* logits, unsigned random,
                                         DrawShared& shared) {
  const SliceSummary* summaries = p.summaries + blockIdx.x * p.numSlices;
  Mass bound = drawBound(row.mass, random);
  int index = 0;
  while (index < p.numSlices - 1 && summaries[index].mass <= bound) bound -= summaries[index++].mass;
  const Span slice = sliceOf(p, index);
  const float largest = largestOf(row);
  const auto valueAt = [&](int i) { return scaledLogit(slot, logits[slice.begin + i], largest); };
  const Threshold kept{orderedBits(-kInfinity), 0};
  sumShares(valueAt, slice.end - slice.begin, kept, shared);
  if (threadIdx.x >= kWarpSize) return -1;
  const int place = findPlace(valueAt, slice.end - slice.begin, kept, bound, shared);
  return place < 0 ? -1 : slice.begin + place;
}

// Draws from what a threshold leaves of a row of scaled logits: a place in that row.
__device__ __forceinline__ int drawKept(const ScaledRow& scaled, const Threshold& kept, unsigned random,
                                        DrawShared& shared) {
  const auto valueAt = [&](int i) { return scaled.values[i]; };
  sumShares(valueAt, scaled.count, kept, shared);
  if (threadIdx.x >= kWarpSize) return -1;
  return findPlace(valueAt, scaled.count, kept, drawBound(totalOf(kept, shared), random), shared);
}

// Draws from what top-k and top-p leave of gathered candidates: a place among them.
__device__ __forceinline__ int drawNarrowed(const SampleParams& p, const SlotParams& slot,
                                            const ScaledRow& scaled, Mass whole, unsigned random,
                                            DrawShared& shared) {
  const auto valueAt = [&](int i) { return scaled.values[i]; };
  if (scaled.count <= kWarpCandidates) {
    if (threadIdx.x >= kWarpSize) return -1;
    const Threshold kept = keepLikely(p, slot, scaled, whole, WarpTeam{});
    const Mass total = measureWithin<true>(scaled, 0, kLastKey, kept, WarpTeam{});
    return walkShare(valueAt, Span{0, scaled.count}, kept, drawBound(total, random), 0, 0);
  }
  const Threshold kept = keepLikely(p, slot, scaled, whole, BlockTeam{shared.masses});
  return drawKept(scaled, kept, random, shared);
}

// The block's row; the result is valid in the first warp.
__device__ __forceinline__ int drawRow(const SampleParams& p, const SlotParams& slot, float* logits,
                                       DrawShared& shared) {
  const SliceSummary row = summariseRow(p, blockIdx.x);
  if (!isDrawable(row)) return -1;
  if (isGreedy(slot)) return idOf(row.best);
  const auto position = static_cast<unsigned>(p.positions[blockIdx.x]);
  const unsigned random = philox(slot.seedLow, slot.seedHigh, position, slot.choice, p.draw, 0);
  if (!isNarrowed(p, slot)) return drawPlain(p, slot, row, logits, random, shared);

  const auto [numCandidates, lastBin] = p.candidateSets[blockIdx.x];
  if (numCandidates > kMaxCandidates) {
    const float largest = largestOf(row);
#pragma unroll 4
    for (int i = threadIdx.x; i < p.vocab; i += kSampleThreads) {
      logits[i] = scaledLogit(slot, logits[i], largest);
    }
    __syncthreads();
    const ScaledRow scaled{logits, p.vocab};
    const BlockTeam team{shared.masses};
    const Threshold kept = keepLikelyLong(p, slot, scaled, lastBin, row.mass, team, shared.room);
    return drawKept(scaled, kept, random, shared);
  }
  const int first = blockIdx.x * kMaxCandidates;
  for (int i = threadIdx.x; i < numCandidates; i += kSampleThreads) {
    shared.room.values[i] = p.candidates[first + i];
  }
  __syncthreads();
  const int place =
      drawNarrowed(p, slot, ScaledRow{shared.room.values, numCandidates}, row.mass, random, shared);
  return place < 0 ? -1 : p.candidateIds[first + place];
}

// Grid (rows).
__global__ void __launch_bounds__(kSampleThreads, 1)
    sampleDrawKernel(const __grid_constant__ SampleParams p) {
  __shared__ DrawShared shared;
  releaseNext();
  waitForPrevious();
  const int slotIndex = p.slots[blockIdx.x];
  if (slotIndex < 0) return;
  const SlotParams slot = p.params[slotIndex];
  const int token = drawRow(p, slot, p.logits + blockIdx.x * p.logitsStride, shared);
  if (threadIdx.x != 0) return;
  p.out[blockIdx.x] = token;
  if (p.lastTokens != nullptr) p.lastTokens[slotIndex] = token;
  const bool counts = slot.usesCounts != 0 && p.counts != nullptr && token >= 0;
  if (counts) p.counts[static_cast<long long>(slotIndex) * p.vocab + token] += 1;
}
