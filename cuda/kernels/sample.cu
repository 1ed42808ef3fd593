// Launcher of the sampler: four kernels over slices of the rows.
#include "sample-adjust.cuh"
#include "sample-draw.cuh"
#include "sample-gather.cuh"
#include "sample-weigh.cuh"

#include "runtime.h"

using namespace granary;

static_assert(sizeof(SlotParams) == sizeof(GranarySamplingParams),
              "SlotParams mirrors GranarySamplingParams");

namespace {

constexpr int32_t kMaxVocab = 1 << 22;  // weights of more tokens could overflow their 64-bit sum
// Slices of all rows together: eight a multiprocessor of a large card.
constexpr int32_t kSlicesAtOnce = 1056;
constexpr int32_t kSliceUnit = 1024;
constexpr int64_t kScratchAlignment = 256;

struct Scratch {
  int64_t summaries, bins, candidates, candidateIds, candidateSets, bytes;  // offsets, then the whole
};

// No more than rows + kSlicesAtOnce in all, so that a scratch for more rows always serves fewer.
int32_t numSlicesFor(int32_t rows) {
  const int64_t slices = ceilDivide(kSlicesAtOnce, rows);
  return static_cast<int32_t>(slices < kMaxSlices ? slices : kMaxSlices);
}

Scratch scratchOf(const GranarySample& a) {
  Scratch s{};
  const int64_t slices = static_cast<int64_t>(a.rows) + kSlicesAtOnce;
  const int64_t candidates = static_cast<int64_t>(a.rows) * kMaxCandidates;
  s.bins = alignUp(slices * sizeof(SliceSummary), kScratchAlignment);
  s.candidates = s.bins + slices * 2 * kSampleBins * sizeof(unsigned);
  s.candidateIds = s.candidates + candidates * sizeof(float);
  s.candidateSets = s.candidateIds + candidates * sizeof(int32_t);
  s.bytes = s.candidateSets + a.rows * sizeof(CandidateSet);
  return s;
}

int32_t checkSample(const GranarySample& a) {
  GRANARY_REQUIRE(a.rows >= 0 && a.vocab > 0 && a.vocab <= kMaxVocab, "sample: %d rows of %d", a.rows,
                  a.vocab);
  GRANARY_REQUIRE(a.numSlots > 0 && a.biasCapacity >= 0 && a.suppressedCapacity >= 0, "sample: %d slots",
                  a.numSlots);
  return GRANARY_OK;
}

SampleParams paramsOf(const GranarySample& a) {
  const Scratch s = scratchOf(a);
  char* scratch = pointer<char>(a.scratch);
  const int32_t numSlices = numSlicesFor(a.rows);
  return SampleParams{pointer<float>(a.logits),
                      pointer<int>(a.slots),
                      pointer<int>(a.positions),
                      pointer<SlotParams>(a.params),
                      pointer<unsigned>(a.counts),
                      pointer<int>(a.biasIds),
                      pointer<float>(a.biasValues),
                      pointer<int>(a.suppressedIds),
                      pointer<unsigned>(a.mask),
                      pointer<int>(a.out),
                      pointer<int>(a.lastTokens),
                      reinterpret_cast<SliceSummary*>(scratch + s.summaries),
                      reinterpret_cast<unsigned*>(scratch + s.bins),
                      reinterpret_cast<float*>(scratch + s.candidates),
                      reinterpret_cast<int*>(scratch + s.candidateIds),
                      reinterpret_cast<CandidateSet*>(scratch + s.candidateSets),
                      a.logitsStride,
                      a.vocab,
                      a.biasCapacity,
                      a.suppressedCapacity,
                      a.draw,
                      numSlices,
                      static_cast<int>(alignUp(ceilDivide(a.vocab, numSlices), kSliceUnit))};
}

}  // namespace

extern "C" {

int64_t granary_sample_scratch_bytes(const GranarySample* args) {
  const int32_t status = checkSample(*args);
  return status == GRANARY_OK ? scratchOf(*args).bytes : -status;
}

int32_t granary_sample(const GranarySample* args) {
  const GranarySample& a = *args;
  GRANARY_TRY(enter());
  GRANARY_TRY(checkSample(a));
  if (a.rows == 0) return GRANARY_OK;
  GRANARY_REQUIRE(a.scratch != 0, "sample: no scratch");
  const SampleParams params = paramsOf(a);
  const dim3 slices(params.numSlices, a.rows);
  GRANARY_TRY(launchEarly<sampleAdjustKernel>("sample adjust", slices, kSliceThreads, 0, params));
  GRANARY_TRY(launchEarly<sampleWeighKernel>("sample weigh", slices, kSliceThreads, 0, params));
  GRANARY_TRY(launchEarly<sampleGatherKernel>("sample gather", slices, kSliceThreads, 0, params));
  return launchEarly<sampleDrawKernel>("sample", dim3(a.rows), kSampleThreads, 0, params);
}

}  // extern "C"
