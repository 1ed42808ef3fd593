// What the sampler's kernels share: parameters, what they leave for each other, weights as integers.
//
// A row is cut into slices, so that few rows fill the card too. Four launches: adjust the logits and find the
// largest, weigh the tokens, gather the candidates of top-k and top-p, draw. All sums are of integers and all
// maxima of distinct keys, so no result depends on the number of slices.
#pragma once
#include "ordered-key.cuh"

constexpr int kSampleThreads = 1024;  // of a row's one block, which draws
constexpr int kSampleWarps = kSampleThreads / kWarpSize;
static_assert(kSampleWarps == kWarpSize, "one warp holds a value of every warp");
constexpr int kSliceThreads = 256;
constexpr int kSliceWarps = kSliceThreads / kWarpSize;
constexpr int kMaxSlices = kWarpSize;  // a warp reads the summaries of a row at once

// Scaled logits are counted in bins of a quarter, from 0 down; the last bin takes the rest.
constexpr int kSampleBins = 128;
constexpr float kBinsPerUnit = 4.0f;
// Tokens that top-k or top-p chooses among in shared memory; of more, those near the threshold alone.
constexpr int kMaxCandidates = 8192;

// GranarySamplingParams.
struct SlotParams {
  float temperature, topP, minP;
  int topK;
  float repetitionPenalty, presencePenalty, frequencyPenalty;
  unsigned seedLow, seedHigh;
  int choice, numBiases, numSuppressed, suppressBelow, usesCounts, reserved0, reserved1;
};

// Weights are summed as integers, in units of 2^-40 of the largest: an integer sum does not depend on its
// order, so neither does the token. 2^18 tokens of weight 1 stay below 2^63.
using Mass = unsigned long long;

struct SliceSummary {
  OrderedKey best;
  Mass mass;
  int holdsNan, hasFinite;
};

// Which tokens of a row top-k and top-p choose among: those up to a bin.
struct CandidateSet {
  int count, lastBin;
};

struct SampleParams {
  float* logits;
  const int* slots;
  const int* positions;
  const SlotParams* params;
  unsigned* counts;
  const int* biasIds;
  const float* biasValues;
  const int* suppressedIds;
  const unsigned* mask;
  int* out;
  int* lastTokens;
  SliceSummary* summaries;      // [rows, numSlices]
  unsigned* bins;               // [rows, numSlices, 2, kSampleBins] tokens, and what they weigh
  float* candidates;            // [rows, kMaxCandidates] scaled logits, in the order of their ids
  int* candidateIds;            // [rows, kMaxCandidates]
  CandidateSet* candidateSets;  // [rows]
  long long logitsStride;
  int vocab, biasCapacity, suppressedCapacity, draw;
  int numSlices, sliceSize;
};

struct Span {
  int begin, end;
};

__device__ __forceinline__ Span sliceOf(const SampleParams& p, int slice) {
  return Span{min(slice * p.sliceSize, p.vocab), min((slice + 1) * p.sliceSize, p.vocab)};
}

__device__ __forceinline__ Mass massOf(float scaled) {
  return __float2ull_rn(expf(scaled) * 1099511627776.0f);
}

__device__ __forceinline__ Mass warpMassSum(Mass mass) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    mass += __shfl_xor_sync(kFullWarp, mass, distance);
  }
  return mass;
}

// Sum over the drawing block, known to every thread; `shared` is free again on return.
__device__ __forceinline__ Mass blockMassSum(Mass mass, Mass (&shared)[kSampleWarps]) {
  mass = warpMassSum(mass);
  if (threadIdx.x % kWarpSize == 0) shared[threadIdx.x / kWarpSize] = mass;
  __syncthreads();
  const Mass total = warpMassSum(shared[threadIdx.x % kSampleWarps]);
  __syncthreads();
  return total;
}

// (logit - largest) / temperature; minus infinity where min-p drops the token.
__device__ __forceinline__ float scaledLogit(const SlotParams& slot, float logit, float largest) {
  float scaled = logit - largest;
  if (slot.temperature != 1.0f) scaled = __fdiv_rn(scaled, slot.temperature);
  if (largest == kInfinity) scaled = logit == kInfinity ? 0.0f : -kInfinity;
  return slot.minP > 0.0f && expf(scaled) < fminf(slot.minP, 1.0f) ? -kInfinity : scaled;
}

__device__ __forceinline__ bool isGreedy(const SlotParams& slot) {
  return !(slot.temperature > 0.0f);
}
__device__ __forceinline__ bool hasTopK(const SampleParams& p, const SlotParams& slot) {
  return slot.topK > 0 && slot.topK < p.vocab;
}
__device__ __forceinline__ bool isNarrowed(const SampleParams& p, const SlotParams& slot) {
  return hasTopK(p, slot) || slot.topP < 1.0f;
}

// Mass that the most likely tokens have to reach for top-p.
__device__ __forceinline__ Mass topPTarget(float topP, Mass total) {
  const double bound = ceil(static_cast<double>(topP) * static_cast<double>(total));
  return bound < 1.0 ? 1 : static_cast<Mass>(bound);
}

// The slices' summaries together; mass is valid after weighing. Every lane of the calling warp gets it.
__device__ __forceinline__ SliceSummary summariseRow(const SampleParams& p, int row) {
  const int lane = threadIdx.x % kWarpSize;
  SliceSummary own{0, 0, 0, 0};
  if (lane < p.numSlices) own = p.summaries[row * p.numSlices + lane];
  return SliceSummary{warpMaxKey(own.best), warpMassSum(own.mass), __any_sync(kFullWarp, own.holdsNan),
                      __any_sync(kFullWarp, own.hasFinite)};
}
__device__ __forceinline__ bool isDrawable(const SliceSummary& row) {
  return !row.holdsNan && row.hasFinite;
}
__device__ __forceinline__ float largestOf(const SliceSummary& row) {
  return fromOrderedBits(static_cast<unsigned>(row.best >> 32));
}
