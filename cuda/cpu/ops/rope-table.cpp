// granary_rope_table.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

GRANARY_EXPORT int32_t granary_rope_table(const GranaryRopeTable* args) {
  Check check("rope_table", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("pairs", args->pairs, 1);
  check.present("positions", args->positions);
  check.present("inverseFrequencies", args->inverseFrequencies);
  check.present("out", args->out);
  if (check.failed()) return check.status();
  kernels().ropeTable(*args);
  return GRANARY_OK;
}
