// Launcher of the head norm, rotation and cache write.
#include "qkv.cuh"

#include "runtime.h"

using namespace granary;

extern "C" int32_t granary_qkv(const GranaryQkv* args) {
  const GranaryQkv& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.numQHeads > 0 && a.numKvHeads >= 0, "qkv: %d rows, %d and %d heads",
                  a.rows, a.numQHeads, a.numKvHeads);
  GRANARY_REQUIRE(a.headDim > 0 && a.headDim <= kQkvMaxDim && a.vHeadDim > 0 && a.vHeadDim <= kQkvMaxDim,
                  "qkv: head dimensions %d and %d", a.headDim, a.vHeadDim);
  GRANARY_REQUIRE(a.cosSin == 0 || (a.pairs > 0 && 2 * a.pairs <= a.headDim), "qkv: %d pairs", a.pairs);
  GRANARY_REQUIRE(isFloat(a.dtype) && isFloat(a.kvDtype), "qkv: dtypes %d, %d", a.dtype, a.kvDtype);
  GRANARY_REQUIRE((a.kCache == 0) == (a.vCache == 0), "qkv: one cache without the other");
  GRANARY_REQUIRE(a.kCache == 0 || (a.pageSize > 0 && a.locations != 0), "qkv: page size %d", a.pageSize);
  if (a.rows == 0) return GRANARY_OK;
  // Block 0 is never written: no location may lie in it.
  if (a.kCache != 0)
    GRANARY_TRY(checkIds("qkv locations", a.locations, a.rows, 0, a.pageSize, IdRange::kForbidden));
  const dim3 grid(a.rows, ceilDivide(a.numQHeads + 2 * a.numKvHeads, kQkvWarps));
  return withFloat(a.dtype, [&](auto element) {
    return withFloat(a.kvDtype, [&](auto kvElement) {
      using T = decltype(element);
      using TKv = decltype(kvElement);
      const QkvParams<T, TKv> params{pointer<T>(a.qkv),
                                     pointer<T>(a.qOut),
                                     pointer<float>(a.qNorm),
                                     pointer<float>(a.kNorm),
                                     pointer<float>(a.cosSin),
                                     pointer<int>(a.locations),
                                     pointer<char>(a.kCache),
                                     pointer<char>(a.vCache),
                                     a.qkvStride,
                                     a.qOutStride,
                                     a.kPageStrideBytes,
                                     a.vPageStrideBytes,
                                     a.numQHeads,
                                     a.numKvHeads,
                                     a.headDim,
                                     a.vHeadDim,
                                     a.pairs,
                                     a.pageSize,
                                     a.interleaved,
                                     a.eps,
                                     a.normWeightOffset};
      constexpr int kThreads = kQkvWarps * kWarpSize;
      const int32_t dim = a.headDim > a.vHeadDim ? a.headDim : a.vHeadDim;
      if (dim <= 128) return launchEarly<qkvKernel<T, TKv, 4>>("qkv", grid, kThreads, 0, params);
      if (dim <= 256) return launchEarly<qkvKernel<T, TKv, 8>>("qkv", grid, kThreads, 0, params);
      return launchEarly<qkvKernel<T, TKv, 16>>("qkv", grid, kThreads, 0, params);
    });
  });
}
