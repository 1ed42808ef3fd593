// top-k and top-p over scaled logits, exactly: bisection over the ordered value, a pass a step. Of equal
// values those of the lowest places are kept. By a team: the drawing block, or its first warp alone where
// the tokens are few and barriers would cost more.
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

constexpr unsigned kLastKey = ~0u;

// Keys among which a threshold lies: the measure from `first` on reaches the target, that above `last` does
// not.
struct KeyRange {
  unsigned first, last;
  Mass above;  // measure above `last`

  __device__ __forceinline__ bool holds(unsigned key) const { return key >= first && key <= last; }
  __device__ __forceinline__ bool isOneKey() const { return first == last; }
  // The upper half of the range, of at least one key.
  __device__ __forceinline__ unsigned middle() const { return last - (last - first) / 2; }
  // `measure` is that from the middle to the last key.
  __device__ __forceinline__ void halve(Mass measure, Mass target) {
    const unsigned middleKey = middle();
    if (above + measure >= target) {
      first = middleKey;
    } else {
      last = middleKey - 1;
      above += measure;
    }
  }
};

// Measure of the kept tokens whose key lies between two, both included. Unrolled, since a long row's loads
// would wait one by one.
template <bool kByMass, typename Team>
__device__ __forceinline__ Mass measureWithin(const ScaledRow& row, unsigned first, unsigned last,
                                              const Threshold& kept, const Team& team) {
  Mass measure = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < row.count; i += Team::kSize) {
    const float value = row.values[i];
    const unsigned own = orderedBits(value);
    if (own >= first && own <= last && own > kept.key) measure += measureOf<kByMass>(value);
  }
  if (threadIdx.x == 0 && kept.numTies > 0 && kept.key >= first && kept.key <= last) {
    measure += kept.numTies * measureOf<kByMass>(fromOrderedBits(kept.key));
  }
  return team.sum(measure);
}

// The threshold in a range outside of which `row` need not hold anything.
template <bool kByMass, typename Team>
__device__ __forceinline__ Threshold bisect(const ScaledRow& row, KeyRange range, const Threshold& kept,
                                            Mass target, const Team& team) {
#pragma unroll 1
  while (!range.isOneKey()) {
    range.halve(measureWithin<kByMass>(row, range.middle(), range.last, kept, team), target);
  }
  const Mass unit = measureOf<kByMass>(fromOrderedBits(range.first));
  return Threshold{range.first, (target - range.above + unit - 1) / unit};
}

// Narrows `kept` to the shortest descending prefix whose measure reaches `target` (> 0); unchanged if none
// does.
template <bool kByMass, typename Team>
__device__ __forceinline__ Threshold narrow(const ScaledRow& row, const Threshold& kept, Mass target,
                                            const Team& team) {
  if (measureWithin<kByMass>(row, kept.key, kLastKey, kept, team) <= target) return kept;
  return bisect<kByMass>(row, KeyRange{0, kLastKey, 0}, kept, target, team);
}

// `whole` is the mass of all tokens, of which the row may hold the likely ones alone.
template <typename Team>
__device__ __forceinline__ Threshold keepLikely(const SampleParams& p, const SlotParams& slot,
                                                const ScaledRow& row, Mass whole, const Team& team) {
  Threshold kept{orderedBits(-kInfinity), 0};
  if (hasTopK(p, slot)) {
    kept = narrow<false>(row, kept, slot.topK, team);
    if (slot.topP < 1.0f) whole = measureWithin<true>(row, 0, kLastKey, kept, team);
  }
  if (slot.topP < 1.0f) kept = narrow<true>(row, kept, topPTarget(slot.topP, whole), team);
  return kept;
}
