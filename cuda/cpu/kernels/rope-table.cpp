// Cosines and sines of the rotary embedding.
//   out[r][i] = {cos, sin}(positions[r] * inverseFrequencies[i]) * scale     f32 [rows, pairs, 2], angles in
//   float64
// One piece of rows a task. Bound: the C library's cos and sin.
#include <math.h>

#include "kernel.h"

namespace granary::GRANARY_ISA {

void ropeTable(const GranaryRopeTable& args) {
  const int32_t* positions = at<const int32_t>(args.positions);
  const double* frequencies = at<const double>(args.inverseFrequencies);
  const double scale = args.scale;
  forEachRange(args.rows, 400 * static_cast<int64_t>(args.pairs), [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      float* out = at<float>(args.out) + r * args.pairs * 2;
      for (int32_t i = 0; i < args.pairs; ++i) {
        const double angle = static_cast<double>(positions[r]) * frequencies[i];
        out[2 * i] = static_cast<float>(::cos(angle) * scale);
        out[2 * i + 1] = static_cast<float>(::sin(angle) * scale);
      }
    }
  });
}

}  // namespace granary::GRANARY_ISA
