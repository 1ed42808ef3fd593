// top-k and top-p over the scaled logits of a row, exactly: bisection over the 32 bits of the ordered value,
// a pass each. Values of equal logits are kept from the lowest id on. Slow and exact for any distribution.
#pragma once
#include "sample-params.cuh"

// Kept are keys above `key`, and of the tokens whose key equals it the numTies with the lowest ids.
struct Threshold {
  unsigned key;
  Mass numTies;
};

__device__ __forceinline__ float valueOfKey(unsigned key) {
  return fromOrderedBits(key);
}

// What counts towards a bound: one a token (top-k) or its weight (top-p).
template <bool kByMass>
__device__ __forceinline__ Mass measureOf(float scaled) {
  return kByMass ? massOf(scaled) : 1;
}

// Measure of the kept tokens whose key is at least `key`.
template <bool kByMass>
__device__ __forceinline__ Mass measureFrom(const SampleParams& p, const float* row, unsigned key,
                                            const Threshold& kept, Mass (&shared)[kSampleWarps]) {
  Mass measure = 0;
  for (int i = threadIdx.x; i < p.vocab; i += kSampleThreads) {
    const unsigned own = orderedBits(row[i]);
    if (own >= key && own > kept.key) measure += measureOf<kByMass>(row[i]);
  }
  if (threadIdx.x == 0 && kept.numTies > 0 && kept.key >= key) {
    measure += kept.numTies * measureOf<kByMass>(valueOfKey(kept.key));
  }
  return blockMassSum(measure, shared);
}

// Narrows `kept` to the shortest descending prefix whose measure reaches `target` (> 0); unchanged if none
// does.
template <bool kByMass>
__device__ __forceinline__ Threshold narrow(const SampleParams& p, const float* row, const Threshold& kept,
                                            Mass target, Mass (&shared)[kSampleWarps]) {
  if (measureFrom<kByMass>(p, row, kept.key, kept, shared) <= target) return kept;
  unsigned key = 0;
#pragma unroll 1
  for (int bit = 31; bit >= 0; --bit) {
    const unsigned candidate = key | 1u << bit;
    if (measureFrom<kByMass>(p, row, candidate, kept, shared) >= target) key = candidate;
  }
  const Mass above = measureFrom<kByMass>(p, row, key + 1, kept, shared);
  const Mass unit = measureOf<kByMass>(valueOfKey(key));
  return Threshold{key, (target - above + unit - 1) / unit};
}
