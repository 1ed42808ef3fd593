// Parameters of the dense product's kernels, from its arguments.
#pragma once
#include "linear.cuh"
#include "runtime.h"

namespace granary {

template <typename T, typename TWeight, typename TOut>
LinearParams<T, TWeight, TOut> linearParamsOf(const GranaryLinear& a) {
  return {pointer<T>(a.x),
          pointer<TWeight>(a.weight),
          pointer<float>(a.bias),
          pointer<TOut>(a.residual),
          pointer<TOut>(a.out),
          a.xStride,
          a.residualStride,
          a.outStride,
          a.rows,
          a.inColumns,
          a.outColumns};
}

}  // namespace granary
