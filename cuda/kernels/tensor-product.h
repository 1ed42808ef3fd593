// Products of many rows on the tensor cores, where cuBLASLt is absent.
#pragma once
#include "../include/granary.h"

namespace granary {

// bf16 operands of any number of rows that the tensor cores take as they are.
bool areTensorOperands(const GranaryLinear& args);
int32_t tensorLinear(const GranaryLinear& args);

}  // namespace granary
