// The first half of sampling: what a request's parameters add to, forbid in or scale of the logits.
#pragma once
#include <stdint.h>

#include "../../include/granary.h"

namespace granary::GRANARY_ISA {

// Penalties, biases, suppression and mask, in this order, in place.
void adjustLogits(const GranarySample& args, const GranarySamplingParams& params, int64_t row, int32_t slot,
                  float* logits);

}  // namespace granary::GRANARY_ISA
