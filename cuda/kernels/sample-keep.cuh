// top-k and top-p over scaled logits, exactly: bisection over the 32 bits of the ordered value, a pass each.
// Values of equal logits are kept from the lowest place on. By a
// team: the drawing block, or its first warp alone where the tokens are few and barriers would cost more.
#pragma once
#include "sample-params.cuh"

// Kept are keys above `key`, and of the tokens whose key equals it the numTies that come first.
struct Threshold {
  unsigned key;
  Mass numTies;
};

struct BlockTeam {
  static constexpr int kSize = kSampleThreads;
  Mass (&shared)[kSampleWarps];
  __device__ __forceinline__ Mass sum(Mass mass) const { return blockMassSum(mass, shared); }
};
struct WarpTeam {
  static constexpr int kSize = kWarpSize;
  __device__ __forceinline__ Mass sum(Mass mass) const { return warpMassSum(mass); }
};

// Scaled logits in the order of their tokens' ids.
struct ScaledRow {
  const float* values;
  int count;
};

// What counts towards a bound: one a token (top-k) or its weight (top-p).
template <bool kByMass>
__device__ __forceinline__ Mass measureOf(float scaled) {
  return kByMass ? massOf(scaled) : 1;
}

// Measure of the kept tokens whose key is at least `key`.
template <bool kByMass, typename Team>
__device__ __forceinline__ Mass measureFrom(const ScaledRow& row, unsigned key, const Threshold& kept,
                                            const Team& team) {
  Mass measure = 0;
  for (int i = threadIdx.x; i < row.count; i += Team::kSize) {
    const unsigned own = orderedBits(row.values[i]);
    if (own >= key && own > kept.key) measure += measureOf<kByMass>(row.values[i]);
  }
  if (threadIdx.x == 0 && kept.numTies > 0 && kept.key >= key) {
    measure += kept.numTies * measureOf<kByMass>(fromOrderedBits(kept.key));
  }
  return team.sum(measure);
}

// Narrows `kept` to the shortest descending prefix whose measure reaches `target` (> 0); unchanged if none
// does.
template <bool kByMass, typename Team>
__device__ __forceinline__ Threshold narrow(const ScaledRow& row, const Threshold& kept, Mass target,
                                            const Team& team) {
  if (measureFrom<kByMass>(row, kept.key, kept, team) <= target) return kept;
  unsigned key = 0;
#pragma unroll 1
  for (int bit = 31; bit >= 0; --bit) {
    const unsigned candidate = key | 1u << bit;
    if (measureFrom<kByMass>(row, candidate, kept, team) >= target) key = candidate;
  }
  const Mass above = measureFrom<kByMass>(row, key + 1, kept, team);
  const Mass unit = measureOf<kByMass>(fromOrderedBits(key));
  return Threshold{key, (target - above + unit - 1) / unit};
}

// `whole` is the mass of all tokens, of which the row may hold the likely ones alone.
template <typename Team>
__device__ __forceinline__ Threshold keepLikely(const SampleParams& p, const SlotParams& slot,
                                                const ScaledRow& row, Mass whole, const Team& team) {
  Threshold kept{orderedBits(-kInfinity), 0};
  if (hasTopK(p, slot)) {
    kept = narrow<false>(row, kept, slot.topK, team);
    if (slot.topP < 1.0f) whole = measureFrom<true>(row, 0, kept, team);
  }
  if (slot.topP < 1.0f) kept = narrow<true>(row, kept, topPTarget(slot.topP, whole), team);
  return kept;
}
