// The second half of sampling: which tokens stay in the draw.
#pragma once
#include <stdint.h>

#include "../../include/granary.h"
#include "../simd/select.h"

namespace granary::GRANARY_ISA {

constexpr int kNucleusBins = 2048;

// Scratch of one thread.
struct SampleScratch {
  float* weights;  // [vocab]: e^((logit - max) / temperature), 0 for a token that is out
  Ranked* ranked;  // [vocab + 16]
  double* bins;    // [kNucleusBins]
};

// Applies min-p, top-k and top-p, in this order, by setting weights of tokens that drop out to 0. `scaled`
// are the logits less their maximum, divided by the temperature; those of dropped tokens become -inf. The
// best token always stays.
void keepLikely(const GranarySamplingParams& params, int32_t vocab, float* scaled,
                const SampleScratch& scratch);

}  // namespace granary::GRANARY_ISA
