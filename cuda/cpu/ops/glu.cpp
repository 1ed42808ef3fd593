// granary_glu.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

GRANARY_EXPORT int32_t granary_glu(const GranaryGlu* args) {
  Check check("glu", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("columns", args->columns, 1);
  check.activation("dtype", args->dtype);
  check.that(args->activation == GRANARY_SILU || args->activation == GRANARY_GELU_TANH, "activation",
             "is unknown");
  check.present("gateUp", args->gateUp);
  check.present("out", args->out);
  check.atLeast("gateUpStride", args->gateUpStride, 2 * static_cast<int64_t>(args->columns));
  check.atLeast("outStride", args->outStride, args->columns);
  if (check.failed()) return check.status();
  kernels().glu(*args);
  return GRANARY_OK;
}
