// Launcher of the dense product: cuBLASLt where it takes the operands, our own kernels elsewhere.
#include "cublaslt.h"
#include "linear-params.h"
#include "product-choice.h"
#include "tensor-product.h"

using namespace granary;

namespace {

template <typename T, typename TWeight, typename TOut>
int32_t launchOwn(const GranaryLinear& a) {
  const auto params = linearParamsOf<T, TWeight, TOut>(a);
  const dim3 grid(ceilDivide(a.outColumns, kTileSide), ceilDivide(a.rows, kTileSide));
  return launch<linearKernel<T, TWeight, TOut>>("linear", grid, kTileThreads, 0, params);
}

int32_t ownLinear(const GranaryLinear& a) {
  if (areTensorOperands(a)) return tensorLinear(a);
  return withFloat(a.dtype, [&](auto x) {
    return withFloat(a.weightDtype, [&](auto weight) {
      return withFloat(a.outDtype,
                       [&](auto out) { return launchOwn<decltype(x), decltype(weight), decltype(out)>(a); });
    });
  });
}

int32_t addBias(const GranaryLinear& a) {
  const dim3 grid(a.rows, ceilDivide(a.outColumns, kAddBiasThreads));
  return withFloat(a.outDtype, [&](auto element) {
    using T = decltype(element);
    const AddBiasParams<T> params{pointer<float>(a.bias),
                                  pointer<T>(a.residual),
                                  pointer<T>(a.out),
                                  a.residualStride,
                                  a.outStride,
                                  a.outColumns};
    return launch<addBiasKernel<T>>("linear bias", grid, kAddBiasThreads, 0, params);
  });
}

}  // namespace

extern "C" int32_t granary_linear(const GranaryLinear* args) {
  const GranaryLinear& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.inColumns > 0 && a.outColumns > 0, "linear: %d x %d x %d", a.rows,
                  a.outColumns, a.inColumns);
  GRANARY_REQUIRE(isFloat(a.dtype) && isFloat(a.weightDtype) && isFloat(a.outDtype),
                  "linear: dtypes %d, %d, %d", a.dtype, a.weightDtype, a.outDtype);
  if (a.rows == 0) return GRANARY_OK;
  if (skinnyTakes(a)) {
    const ProductKernel kernel = chooseProduct(a.rows, a.outColumns, a.inColumns, false);
    if (kernel != ProductKernel::kLibrary) return skinnyLinear(a, kernel);
  }
  if (!cublasLtTakes(a)) return ownLinear(a);
  GranaryLinear product = a;
  // Its bias has the output's type and ours is f32. Beside a bf16 output the bias goes where the residual
  // would.
  const bool addsBiasFirst = a.bias != 0 && a.outDtype != GRANARY_F32;
  if (addsBiasFirst) {
    product.bias = 0;
    product.residual = a.out;
    product.residualStride = a.outStride;
  }
  const int32_t prepared = cublasLtPrepare(product);
  if (prepared == GRANARY_UNSUPPORTED) return ownLinear(a);
  GRANARY_TRY(prepared);
  if (addsBiasFirst) GRANARY_TRY(addBias(a));
  const int32_t status = cublasLtLinear(product);
  return status == GRANARY_UNSUPPORTED ? ownLinear(product) : status;
}
