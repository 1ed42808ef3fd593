// Small uploads from pageable memory, which would otherwise hold the host until the device has come to them:
// they are written to a page-locked ring first. Not for captures: a graph would replay whatever the ring
// holds then.
#pragma once
#include "runtime.h"

namespace granary {

// Largest upload that goes through the ring.
constexpr int64_t kMaxStagedBytes = 1 << 20;

int32_t openStaging();
void closeStaging();

// Enqueues the copy; the source may be reused on return.
int32_t stageUpload(void* destination, const void* source, int64_t bytes);

}  // namespace granary
