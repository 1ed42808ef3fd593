// Launcher of the sampler.
#include "sample.cuh"

#include "runtime.h"

using namespace granary;

static_assert(sizeof(SlotParams) == sizeof(GranarySamplingParams),
              "SlotParams mirrors GranarySamplingParams");

namespace {

constexpr int32_t kMaxVocab = 1 << 22;  // weights of more tokens could overflow their 64-bit sum

int32_t checkSample(const GranarySample& a) {
  GRANARY_REQUIRE(a.rows >= 0 && a.vocab > 0 && a.vocab <= kMaxVocab, "sample: %d rows of %d", a.rows,
                  a.vocab);
  GRANARY_REQUIRE(a.numSlots > 0 && a.biasCapacity >= 0 && a.suppressedCapacity >= 0, "sample: %d slots",
                  a.numSlots);
  return GRANARY_OK;
}

}  // namespace

extern "C" {

int64_t granary_sample_scratch_bytes(const GranarySample* args) {
  const int32_t status = checkSample(*args);
  return status == GRANARY_OK ? 0 : -status;
}

int32_t granary_sample(const GranarySample* args) {
  const GranarySample& a = *args;
  GRANARY_TRY(enter());
  GRANARY_TRY(checkSample(a));
  if (a.rows == 0) return GRANARY_OK;
  const SampleParams params{pointer<float>(a.logits),
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
                            a.logitsStride,
                            a.vocab,
                            a.biasCapacity,
                            a.suppressedCapacity,
                            a.draw};
  return launch<sampleKernel>("sample", dim3(a.rows), kSampleThreads, 0, params);
}

}  // extern "C"
