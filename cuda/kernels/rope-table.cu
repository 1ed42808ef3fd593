// Launcher of the rotary angle table.
#include "rope-table.cuh"

#include "runtime.h"

using namespace granary;

extern "C" int32_t granary_rope_table(const GranaryRopeTable* args) {
  const GranaryRopeTable& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.pairs > 0, "rope_table: %d rows of %d pairs", a.rows, a.pairs);
  if (a.rows == 0) return GRANARY_OK;
  const RopeTableParams params{pointer<int>(a.positions),
                               pointer<double>(a.inverseFrequencies),
                               pointer<float>(a.out),
                               a.rows,
                               a.pairs,
                               a.scale};
  const dim3 grid(ceilDivide(static_cast<int64_t>(a.rows) * a.pairs, kRopeTableThreads));
  return launchEarly<ropeTableKernel>("rope_table", grid, kRopeTableThreads, 0, params);
}
