// granary_rms_norm.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

GRANARY_EXPORT int32_t granary_rms_norm(const GranaryRmsNorm* args) {
  Check check("rms_norm", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("columns", args->columns, 1);
  check.activation("dtype", args->dtype);
  check.storage("weightDtype", args->weightDtype);
  check.present("x", args->x);
  check.present("weight", args->weight);
  check.present("out", args->out);
  check.atLeast("xStride", args->xStride, args->columns);
  check.atLeast("outStride", args->outStride, args->columns);
  if (args->residual != 0) check.atLeast("residualStride", args->residualStride, args->columns);
  if (check.failed()) return check.status();
  kernels().rmsNorm(*args);
  return GRANARY_OK;
}
