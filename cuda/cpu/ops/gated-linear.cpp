// granary_gated_linear: the product into its scratch, then the gated unit.
#include "../../include/granary.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

GRANARY_EXPORT int32_t granary_gated_linear(const GranaryGatedLinear* args) {
  Check check("gated_linear", args);
  if (check.failed()) return check.status();
  check.atLeast("columns", args->columns, 1);
  check.present("gateUp", args->gateUp);
  if (check.failed()) return check.status();
  GranaryLinear linear{};
  linear.x = args->x;
  linear.weight = args->weight;
  linear.bias = args->bias;
  linear.out = args->gateUp;
  linear.xStride = args->xStride;
  linear.outStride = args->gateUpStride;
  linear.rows = args->rows;
  linear.inColumns = args->inColumns;
  linear.outColumns = 2 * args->columns;
  linear.dtype = linear.outDtype = args->dtype;
  linear.weightDtype = args->weightDtype;
  const int32_t status = granary_linear(&linear);
  if (status != GRANARY_OK) return status;
  GranaryGlu glu{};
  glu.gateUp = args->gateUp;
  glu.out = args->out;
  glu.gateUpStride = args->gateUpStride;
  glu.outStride = args->outStride;
  glu.rows = args->rows;
  glu.columns = args->columns;
  glu.activation = args->activation;
  glu.dtype = args->dtype;
  return granary_glu(&glu);
}
