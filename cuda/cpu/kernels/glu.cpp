// Gated activation.
//   out[r][c] = activation(gateUp[r][c]) * gateUp[r][columns + c]     f32
// One piece of rows a task. Bound: the exponential.
#include "glu.h"

#include "kernel.h"

namespace granary::GRANARY_ISA {

void gluRow(float* out, const float* gateUp, int64_t columns, int32_t activation) {
  const float* up = gateUp + columns;
  if (activation == GRANARY_GELU_TANH) {
    mapRows(out, gateUp, up, columns, [](Vec16 g, Vec16 u) { return mul(geluTanh(g), u); });
  } else {
    mapRows(out, gateUp, up, columns, [](Vec16 g, Vec16 u) { return mul(silu(g), u); });
  }
}

void glu(const GranaryGlu& args) {
  forEachRange(args.rows, 32 * static_cast<int64_t>(args.columns), [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      gluRow(at<float>(args.out) + r * args.outStride, at<const float>(args.gateUp) + r * args.gateUpStride,
             args.columns, args.activation);
    }
  });
}

}  // namespace granary::GRANARY_ISA
