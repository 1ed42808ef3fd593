// Attention kernels that were compiled at run time for one head dimension and handed in by the caller; the
// library has its own for the common ones.
#pragma once
#include "runtime.h"

namespace granary {

struct LoadedKernel {
  const void* function;  // null: there is none
  int32_t sharedBytes;   // dynamic, a block
};

// The tile kernel of a padded head dimension.
LoadedKernel loadedTileKernel(GranaryAttentionKernelKind kind, int32_t dim);
// The narrowest scalar kernel of these types that takes `dim`.
LoadedKernel loadedScalarKernel(int32_t dim, int32_t dtype, int32_t kvDtype, bool isWide);

// Forgets all of them, at shutdown.
void unloadAttention();

}  // namespace granary
