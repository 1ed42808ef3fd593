// Launcher of the gated product: one kernel for few rows, a product and the gated unit for many.
#include "product-choice.h"
#include "runtime.h"

using namespace granary;

namespace {

GranaryLinear linearOf(const GranaryGatedLinear& a) {
  GranaryLinear linear{};
  linear.x = a.x;
  linear.weight = a.weight;
  linear.bias = a.bias;
  linear.out = a.gateUp;
  linear.xStride = a.xStride;
  linear.outStride = a.gateUpStride;
  linear.rows = a.rows;
  linear.inColumns = a.inColumns;
  linear.outColumns = 2 * a.columns;
  linear.dtype = linear.outDtype = a.dtype;
  linear.weightDtype = a.weightDtype;
  return linear;
}

GranaryGlu gluOf(const GranaryGatedLinear& a) {
  GranaryGlu glu{};
  glu.gateUp = a.gateUp;
  glu.out = a.out;
  glu.gateUpStride = a.gateUpStride;
  glu.outStride = a.outStride;
  glu.rows = a.rows;
  glu.columns = a.columns;
  glu.activation = a.activation;
  glu.dtype = a.dtype;
  return glu;
}

}  // namespace

extern "C" int32_t granary_gated_linear(const GranaryGatedLinear* args) {
  const GranaryGatedLinear& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.inColumns > 0 && a.columns > 0, "gated_linear: %d x %d x %d", a.rows,
                  a.columns, a.inColumns);
  GRANARY_REQUIRE(isFloat(a.dtype) && isFloat(a.weightDtype), "gated_linear: dtypes %d, %d", a.dtype,
                  a.weightDtype);
  GRANARY_REQUIRE(a.activation == GRANARY_SILU || a.activation == GRANARY_GELU_TANH, "activation %d",
                  a.activation);
  if (a.rows == 0) return GRANARY_OK;
  GranaryLinear linear = linearOf(a);
  if (skinnyTakes(linear)) {
    const ProductKernel kernel = chooseProduct(a.rows, linear.outColumns, a.inColumns, true);
    if (kernel != ProductKernel::kLibrary) {
      linear.out = a.out;
      linear.outStride = a.outStride;
      linear.outColumns = a.columns;
      return skinnyGatedLinear(linear, a.activation, kernel);
    }
  }
  GRANARY_TRY(granary_linear(&linear));
  const GranaryGlu glu = gluOf(a);
  return granary_glu(&glu);
}
