// Log-softmax of rows.
//   out[r][c] = (logits[r][c] - max) - log(sum of e^(logits[r] - max))     f32 [rows, columns]; a NaN fills
//   its row
// One row a task: the sum is one reduction. Bound: the exponential.
#include <math.h>

#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

void logSoftmaxRow(float* out, const float* logits, int64_t columns) {
  if (holdsNan(logits, columns)) {
    mapRow(out, logits, columns, [](Vec16) { return broadcast(__builtin_nanf("")); });
    return;
  }
  const float largest = maxOf(logits, columns);
  const float logSum = static_cast<float>(::log(static_cast<double>(sumOfExp(logits, columns, largest))));
  const Vec16 shift = broadcast(largest);
  const Vec16 offset = broadcast(logSum);
  mapRow(out, logits, columns, [&](Vec16 a) { return sub(sub(a, shift), offset); });
}

}  // namespace

void logSoftmax(const GranaryLogSoftmax& args) {
  forEachRange(args.rows, 24 * static_cast<int64_t>(args.columns), [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      logSoftmaxRow(at<float>(args.out) + r * args.outStride,
                    at<const float>(args.logits) + r * args.logitsStride, args.columns);
    }
  });
}

}  // namespace granary::GRANARY_ISA
