// RMS norm with an optional residual.
//   residual[r] += x[r], stored; out[r] = y * (1 / sqrt(mean(y^2) + eps)) * (weight + weightOffset), y =
//   residual or x x, residual, out f32 [rows, columns]; weight f32 or bf16 [columns]
// One piece of rows a task. Bound: memory.
#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

template <typename T>
void normRow(const GranaryRmsNorm& args, int64_t row) {
  const float* y = at<const float>(args.x) + row * args.xStride;
  if (args.residual != 0) {
    float* residual = at<float>(args.residual) + row * args.residualStride;
    mapRows(residual, residual, y, args.columns, [](Vec16 a, Vec16 b) { return add(a, b); });
    y = residual;
  }
  const Vec16 factor = broadcast(rmsFactor(y, args.columns, args.eps));
  const Vec16 offset = broadcast(args.weightOffset);
  mapRows(at<float>(args.out) + row * args.outStride, y, at<const T>(args.weight), args.columns,
          [&](Vec16 a, Vec16 w) { return mul(mul(a, factor), add(w, offset)); });
}

}  // namespace

void rmsNorm(const GranaryRmsNorm& args) {
  forEachRange(args.rows, 4 * args.columns, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      if (args.weightDtype == GRANARY_BF16) normRow<uint16_t>(args, r);
      else normRow<float>(args, r);
    }
  });
}

}  // namespace granary::GRANARY_ISA
