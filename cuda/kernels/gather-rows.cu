// Launcher of the row gather.
#include "gather-rows.cuh"

#include "runtime.h"

using namespace granary;

namespace {

template <typename TWord>
int32_t launchGather(const GranaryGatherRows& a) {
  const int64_t elementBytes = bytesOf(a.dtype);
  const auto words = [&](int64_t elements) {
    return elements * elementBytes / static_cast<int64_t>(sizeof(TWord));
  };
  const GatherRowsParams<TWord> params{pointer<TWord>(a.x),   pointer<int>(a.indices),
                                       pointer<TWord>(a.out), words(a.xStride),
                                       words(a.outStride),    static_cast<int>(words(a.columns))};
  return launchEarly<gatherRowsKernel<TWord>>("gather_rows", dim3(a.rows), kGatherThreads, 0, params);
}

}  // namespace

extern "C" int32_t granary_gather_rows(const GranaryGatherRows* args) {
  const GranaryGatherRows& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.columns > 0, "gather_rows: %d rows of %d columns", a.rows, a.columns);
  GRANARY_REQUIRE(a.dtype >= GRANARY_F32 && a.dtype <= GRANARY_I32, "gather_rows: dtype %d", a.dtype);
  if (a.rows == 0) return GRANARY_OK;
  if (isWide(a.x, a.xStride, a.columns) && isWide(a.out, a.outStride, a.columns))
    return launchGather<GatherWord16>(a);
  return bytesOf(a.dtype) == 4 ? launchGather<unsigned>(a) : launchGather<unsigned short>(a);
}
