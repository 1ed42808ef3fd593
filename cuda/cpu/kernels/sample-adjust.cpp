// Penalties, biases, suppression and mask of one row of logits.
#include "sample-adjust.h"

#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

// Repetition over prompt and output first, then frequency, then presence over the output.
void penalize(const GranarySamplingParams& params, const uint32_t* counts, int32_t vocab, float* logits) {
  for (int32_t i = 0; i < vocab; ++i) {
    if (counts[i] == 0) continue;
    float logit = logits[i];
    logit = logit > 0 ? logit / params.repetitionPenalty : logit * params.repetitionPenalty;
    const uint32_t times = counts[i] & 0x7fffffffu;
    if (times > 0) {
      logit = logit - params.frequencyPenalty * static_cast<float>(times);
      logit = logit - params.presencePenalty;
    }
    logits[i] = logit;
  }
}

void applyMask(const uint32_t* mask, int32_t vocab, float* logits) {
  for (int32_t begin = 0; begin < vocab; begin += 32) {
    const uint32_t allowed = mask[begin / 32];
    if (allowed == 0xffffffffu) continue;
    const int32_t count = vocab - begin < 32 ? vocab - begin : 32;
    for (int32_t i = 0; i < count; ++i) {
      if ((allowed >> i & 1) == 0) logits[begin + i] = -__builtin_inff();
    }
  }
}

}  // namespace

void adjustLogits(const GranarySample& args, const GranarySamplingParams& params, int64_t row, int32_t slot,
                  float* logits) {
  const int32_t vocab = args.vocab;
  if (params.usesCounts != 0 && args.counts != 0) {
    penalize(params, at<const uint32_t>(args.counts) + static_cast<int64_t>(slot) * vocab, vocab, logits);
  }
  const int64_t biases = static_cast<int64_t>(slot) * args.biasCapacity;
  for (int32_t i = 0; i < params.numBiases && i < args.biasCapacity; ++i) {
    const int32_t id = at<const int32_t>(args.biasIds)[biases + i];
    if (id >= 0 && id < vocab) logits[id] += at<const float>(args.biasValues)[biases + i];
  }
  if (at<const int32_t>(args.positions)[row] < params.suppressBelow) {
    const int32_t* ids =
        at<const int32_t>(args.suppressedIds) + static_cast<int64_t>(slot) * args.suppressedCapacity;
    for (int32_t i = 0; i < params.numSuppressed && i < args.suppressedCapacity; ++i) {
      if (ids[i] >= 0 && ids[i] < vocab) logits[ids[i]] = -__builtin_inff();
    }
  }
  if (args.mask != 0) applyMask(at<const uint32_t>(args.mask) + row * ((vocab + 31) / 32), vocab, logits);
}

}  // namespace granary::GRANARY_ISA
