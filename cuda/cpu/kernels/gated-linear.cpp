// Linear layer and gated activation together: the very bits of granary_linear into gateUp and granary_glu
// from there.
#include "kernel.h"

namespace granary::GRANARY_ISA {

void gatedLinear(const GranaryGatedLinear& args) {
  linear({
      .x = args.x,
      .weight = args.weight,
      .bias = args.bias,
      .residual = 0,
      .out = args.gateUp,
      .xStride = args.xStride,
      .residualStride = 0,
      .outStride = args.gateUpStride,
      .rows = args.rows,
      .inColumns = args.inColumns,
      .outColumns = 2 * args.columns,
      .dtype = args.dtype,
      .weightDtype = args.weightDtype,
      .outDtype = args.dtype,
  });
  glu({
      .gateUp = args.gateUp,
      .out = args.out,
      .gateUpStride = args.gateUpStride,
      .outStride = args.outStride,
      .rows = args.rows,
      .columns = args.columns,
      .activation = args.activation,
      .dtype = args.dtype,
  });
}

}  // namespace granary::GRANARY_ISA
