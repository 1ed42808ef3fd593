// The gated activation of one row, shared with the experts.
#pragma once
#include <stdint.h>

namespace granary::GRANARY_ISA {

// One row of gateUp is [gate | up], each `columns` long. out may be gateUp.
void gluRow(float* out, const float* gateUp, int64_t columns, int32_t activation);

}  // namespace granary::GRANARY_ISA
