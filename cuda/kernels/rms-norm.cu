// Launcher of the residual add and RMS norm.
#include "rms-norm.cuh"

#include "runtime.h"

using namespace granary;

namespace {

constexpr int32_t kMaxColumns = 49152;  // a row has to fit into a block's shared memory

template <typename T, typename TWeight>
int32_t launchRmsNorm(const GranaryRmsNorm& a) {
  const RmsNormParams<T, TWeight> params{pointer<T>(a.x),
                                         pointer<T>(a.residual),
                                         pointer<TWeight>(a.weight),
                                         pointer<T>(a.out),
                                         a.xStride,
                                         a.residualStride,
                                         a.outStride,
                                         a.columns,
                                         a.eps,
                                         a.weightOffset};
  const bool wide = isWide(a.x, a.xStride, a.columns) && isWide(a.out, a.outStride, a.columns) &&
                    isWide(a.weight, 0, a.columns) &&
                    (a.residual == 0 || isWide(a.residual, a.residualStride, a.columns));
  const size_t sharedBytes = a.columns * sizeof(float);
  constexpr auto kWide = rmsNormKernel<T, TWeight, 8>;
  constexpr auto kNarrow = rmsNormKernel<T, TWeight, 1>;
  return wide ? launchEarly<kWide>("rms_norm", dim3(a.rows), kRmsNormThreads, sharedBytes, params)
              : launchEarly<kNarrow>("rms_norm", dim3(a.rows), kRmsNormThreads, sharedBytes, params);
}

}  // namespace

extern "C" int32_t granary_rms_norm(const GranaryRmsNorm* args) {
  const GranaryRmsNorm& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.columns > 0 && a.columns <= kMaxColumns, "rms_norm: %d rows of %d columns",
                  a.rows, a.columns);
  GRANARY_REQUIRE(isFloat(a.dtype) && isFloat(a.weightDtype), "rms_norm: dtypes %d, %d", a.dtype,
                  a.weightDtype);
  if (a.rows == 0) return GRANARY_OK;
  return withFloat(a.dtype, [&](auto element) {
    return withFloat(a.weightDtype,
                     [&](auto weight) { return launchRmsNorm<decltype(element), decltype(weight)>(a); });
  });
}
