// Launcher of the ordered scatter.
#include "scatter.cuh"

#include <climits>

#include "runtime.h"

using namespace granary;

extern "C" int32_t granary_scatter(const GranaryScatter* args) {
  const GranaryScatter& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.count >= 0, "scatter of %d entries", a.count);
  if (a.count == 0) return GRANARY_OK;
  GRANARY_TRY(checkIds("scatter indices", a.indices, a.count, 0, INT_MAX));
  const ScatterParams params{pointer<int>(a.table), pointer<int>(a.indices), pointer<int>(a.values), a.count};
  return launch<scatterKernel>("scatter", dim3(1), kWarpSize, 0, params);
}
