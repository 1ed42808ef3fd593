// granary_linear.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

GRANARY_EXPORT int32_t granary_linear(const GranaryLinear* args) {
  Check check("linear", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("inColumns", args->inColumns, 1);
  check.atLeast("outColumns", args->outColumns, 1);
  check.activation("dtype", args->dtype);
  check.activation("outDtype", args->outDtype);
  check.storage("weightDtype", args->weightDtype);
  check.present("x", args->x);
  check.present("weight", args->weight);
  check.present("out", args->out);
  check.atLeast("xStride", args->xStride, args->inColumns);
  check.atLeast("outStride", args->outStride, args->outColumns);
  if (args->residual != 0) check.atLeast("residualStride", args->residualStride, args->outColumns);
  if (check.failed()) return check.status();
  kernels().linear(*args);
  return GRANARY_OK;
}
