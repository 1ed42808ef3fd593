// Launchers of block clearing and copying.
#include "blocks.cuh"

#include <climits>

#include "runtime.h"

using namespace granary;

static_assert(sizeof(CacheField) == sizeof(GranaryField), "CacheField mirrors GranaryField");

namespace {

constexpr int32_t kMaxFields = 65535;  // the grid's second dimension

}  // namespace

extern "C" {

int32_t granary_zero_blocks(const GranaryZeroBlocks* args) {
  const GranaryZeroBlocks& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.numFields >= 0 && a.numFields <= kMaxFields && a.numIds >= 0,
                  "zero_blocks: %d fields of %d blocks", a.numFields, a.numIds);
  if (a.numFields == 0 || a.numIds == 0) return GRANARY_OK;
  GRANARY_TRY(checkIds("zero_blocks ids", a.ids, a.numIds, 0, INT_MAX));
  const ZeroBlocksParams params{pointer<CacheField>(a.fields), pointer<int>(a.ids)};
  return launch<zeroBlocksKernel>("zero_blocks", dim3(a.numIds, a.numFields, kBlockSlices), kBlockThreads, 0,
                                  params);
}

int32_t granary_copy_blocks(const GranaryCopyBlocks* args) {
  const GranaryCopyBlocks& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.numFields >= 0 && a.numFields <= kMaxFields && a.numIds >= 0,
                  "copy_blocks: %d fields of %d blocks", a.numFields, a.numIds);
  if (a.numFields == 0 || a.numIds == 0) return GRANARY_OK;
  GRANARY_TRY(checkIds("copy_blocks sources", a.sourceIds, a.numIds, 0, INT_MAX));
  GRANARY_TRY(checkIds("copy_blocks destinations", a.destinationIds, a.numIds, 0, INT_MAX));
  const CopyBlocksParams params{pointer<CacheField>(a.sources), pointer<CacheField>(a.destinations),
                                pointer<int>(a.sourceIds), pointer<int>(a.destinationIds)};
  return launch<copyBlocksKernel>("copy_blocks", dim3(a.numIds, a.numFields, kBlockSlices), kBlockThreads, 0,
                                  params);
}

}  // extern "C"
