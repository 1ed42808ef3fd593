// What a failed call leaves for granary_last_error(): one line of text for the calling thread.
#pragma once
#include "../../include/granary.h"

namespace granary {

// Stores the text "op: message" and returns `status`.
int32_t fail(int32_t status, const char* op, const char* format, ...) __attribute__((format(printf, 3, 4)));

}  // namespace granary
