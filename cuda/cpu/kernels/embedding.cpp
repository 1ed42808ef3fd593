// Embedding and row gather.
//   out[r] = table[ids[r]] * scale     f32 [rows, columns]; a negative id gives a zero row
// One piece of rows a task. Bound: memory.
#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

template <typename T>
void embedRows(const GranaryEmbedding& args) {
  const int64_t columns = args.columns;
  const T* table = at<const T>(args.table);
  const int32_t* ids = at<const int32_t>(args.ids);
  const Vec16 scale = broadcast(args.scale);
  forEachRange(args.rows, columns, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      float* out = at<float>(args.out) + r * columns;
      if (ids[r] < 0) memset(out, 0, sizeof(float) * static_cast<size_t>(columns));
      else mapRow(out, table + ids[r] * columns, columns, [&](Vec16 a) { return mul(a, scale); });
    }
  });
}

}  // namespace

void embedding(const GranaryEmbedding& args) {
  if (args.tableDtype == GRANARY_BF16) embedRows<uint16_t>(args);
  else embedRows<float>(args);
}

void gatherRows(const GranaryGatherRows& args) {
  const size_t bytes = sizeof(float) * static_cast<size_t>(args.columns);
  const int32_t* indices = at<const int32_t>(args.indices);
  forEachRange(args.rows, args.columns, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      float* out = at<float>(args.out) + r * args.outStride;
      if (indices[r] < 0) memset(out, 0, bytes);
      else memcpy(out, at<const float>(args.x) + indices[r] * args.xStride, bytes);
    }
  });
}

}  // namespace granary::GRANARY_ISA
