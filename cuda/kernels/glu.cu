// Launcher of the gated linear unit.
#include "glu.cuh"

#include "runtime.h"

using namespace granary;

static_assert(kActivationSilu == GRANARY_SILU && kActivationGeluTanh == GRANARY_GELU_TANH,
              "activation numbers");

extern "C" int32_t granary_glu(const GranaryGlu* args) {
  const GranaryGlu& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.columns > 0 && isFloat(a.dtype), "glu: %d rows of %d columns, dtype %d",
                  a.rows, a.columns, a.dtype);
  GRANARY_REQUIRE(a.activation == GRANARY_SILU || a.activation == GRANARY_GELU_TANH, "activation %d",
                  a.activation);
  if (a.rows == 0) return GRANARY_OK;
  const bool wide = isWide(a.gateUp, a.gateUpStride, a.columns) && isWide(a.out, a.outStride, a.columns);
  const dim3 grid(a.rows, ceilDivide(a.columns, kGluThreads * (wide ? 8 : 1)));
  return withFloat(a.dtype, [&](auto element) {
    using T = decltype(element);
    const GluParams<T> params{pointer<T>(a.gateUp), pointer<T>(a.out), a.gateUpStride,
                              a.outStride,          a.columns,         a.activation};
    return wide ? launchEarly<gluKernel<T, 8>>("glu", grid, kGluThreads, 0, params)
                : launchEarly<gluKernel<T, 1>>("glu", grid, kGluThreads, 0, params);
  });
}
