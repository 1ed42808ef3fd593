// Launchers of the products of many rows.
#include "tensor-product.h"

#include "linear-hopper.cuh"
#include "linear-params.h"
#include "linear-tensor.cuh"
#include "tensor-map.h"

namespace granary {

namespace {

template <int kColumns, typename TOut>
int32_t launchHopper(const GranaryLinear& a) {
  const bool isRowWide =
      isWide(a.out, a.outStride, a.outColumns) && isWide(a.residual, a.residualStride, a.outColumns);
  LinearHopperParams<TOut> params{{},
                                  {},
                                  linearParamsOf<Bf16, Bf16, TOut>(a),
                                  static_cast<int>(ceilDivide(a.rows, kLinearRows)),
                                  static_cast<int>(ceilDivide(a.outColumns, kColumns)),
                                  isRowWide};
  GRANARY_TRY(encodeMatrixMap(MatrixLayout{a.x, a.rows, a.inColumns, a.xStride}, kLinearRows, params.xMap));
  GRANARY_TRY(encodeMatrixMap(MatrixLayout{a.weight, a.outColumns, a.inColumns, a.inColumns}, kColumns,
                              params.weightMap));
  const dim3 grid(static_cast<unsigned>(params.numRowTiles) * params.numColumnTiles);
  return launchEarly<linearHopperKernel<kColumns, TOut>>("linear", grid, kLinearThreads,
                                                         LinearHopperShape<kColumns>::kSharedBytes, params);
}

// Rounds of blocks over the card.
int64_t roundsOf(const GranaryLinear& a, int32_t columns) {
  const int64_t numTiles = ceilDivide(a.rows, kLinearRows) * ceilDivide(a.outColumns, columns);
  return ceilDivide(numTiles, runtime.numMultiprocessors);
}

template <typename TOut>
int32_t launchTensor(const GranaryLinear& a) {
  if (runtime.hasHopperKernels) {
    // A narrow block takes a little more than half the time of a wide one.
    const bool isWideFaster = 20 * roundsOf(a, 256) <= 11 * roundsOf(a, 128);
    return isWideFaster ? launchHopper<256, TOut>(a) : launchHopper<128, TOut>(a);
  }
  const dim3 grid(ceilDivide(a.rows, kTensorRows), ceilDivide(a.outColumns, LinearTensorShape::kWeightRows));
  return launchEarly<linearTensorKernel<TOut>>("linear", grid, LinearTensorShape::kThreads,
                                               LinearTensorShape::kSharedBytes,
                                               linearParamsOf<Bf16, Bf16, TOut>(a));
}

}  // namespace

bool areTensorOperands(const GranaryLinear& a) {
  return a.dtype == GRANARY_BF16 && a.weightDtype == GRANARY_BF16 && a.inColumns % kTensorDepth == 0 &&
         a.x % kChunkBytes == 0 && a.weight % kChunkBytes == 0 && a.xStride % kChunkElements == 0;
}

int32_t tensorLinear(const GranaryLinear& args) {
  return args.outDtype == GRANARY_F32 ? launchTensor<float>(args) : launchTensor<Bf16>(args);
}

}  // namespace granary
