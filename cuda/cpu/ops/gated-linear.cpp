// granary_gated_linear.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

GRANARY_EXPORT int32_t granary_gated_linear(const GranaryGatedLinear* args) {
  Check check("gated_linear", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("inColumns", args->inColumns, 1);
  check.atLeast("columns", args->columns, 1);
  check.atMost("columns", args->columns, INT32_MAX / 2);
  check.activation("dtype", args->dtype);
  check.storage("weightDtype", args->weightDtype);
  check.that(args->activation == GRANARY_SILU || args->activation == GRANARY_GELU_TANH, "activation",
             "is unknown");
  check.present("x", args->x);
  check.present("weight", args->weight);
  check.present("gateUp", args->gateUp);
  check.present("out", args->out);
  check.atLeast("xStride", args->xStride, args->inColumns);
  check.atLeast("gateUpStride", args->gateUpStride, 2 * static_cast<int64_t>(args->columns));
  check.atLeast("outStride", args->outStride, args->columns);
  if (check.failed()) return check.status();
  kernels().gatedLinear(*args);
  return GRANARY_OK;
}
