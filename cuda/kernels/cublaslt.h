// Products through cuBLASLt, which is loaded at run time and may be absent.
#pragma once
#include <cstdint>

#include "../include/granary.h"

namespace granary {

void closeCublasLt();
// 0 when it is absent.
int32_t cublasLtVersion();

// True when cuBLASLt is there and takes these operand types.
bool cublasLtTakes(const GranaryLinear& args);

// Finds a plan for the shape: GRANARY_UNSUPPORTED where there is none, GRANARY_CAPTURE where a capture would
// have to ask for a heuristic or load a module. A bias is taken beside f32 output only.
int32_t cublasLtPrepare(const GranaryLinear& args);
// Enqueues the product; cublasLtPrepare has just accepted the same arguments. GRANARY_UNSUPPORTED where the
// library takes its word back: nothing was enqueued then.
int32_t cublasLtLinear(const GranaryLinear& args);

}  // namespace granary
