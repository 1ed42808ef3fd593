// Launchers of the products of few rows.
#include "skinny-product.cuh"

#include "product-choice.h"
#include "runtime.h"
#include "tensor-product.h"

namespace granary {

namespace {

constexpr int32_t kMaxRows = 64;
// Three blocks of an SM keep 192 KB of weights on their way.
constexpr int kNarrowStages = 4, kWideStages = 2;

SkinnyParams paramsOf(const GranaryLinear& a, int32_t activation) {
  return SkinnyParams{SkinnyWeight{pointer<Bf16>(a.weight), pointer<float>(a.bias), a.inColumns, a.outColumns,
                                   activation},
                      pointer<Bf16>(a.x),
                      pointer<void>(a.residual),
                      pointer<void>(a.out),
                      a.xStride,
                      a.residualStride,
                      a.outStride,
                      a.rows,
                      a.outDtype == GRANARY_F32};
}

template <int kWeightTiles, int kRowTiles, int kStages, bool kIsGated>
int32_t launchSkinny(const SkinnyParams& params) {
  constexpr int kColumns = kWeightTiles * kWeightTileRows / (kIsGated ? 2 : 1);
  constexpr int kSharedBytes = SkinnyShape<kWeightTiles, kRowTiles, kStages>::kSharedBytes;
  const dim3 grid(ceilDivide(params.matrix.outColumns, kColumns));
  return launchEarly<skinnyProductKernel<kWeightTiles, kRowTiles, kStages, kIsGated>>(
      "skinny product", grid, kSkinnyThreads, kSharedBytes, params);
}

template <bool kIsGated>
int32_t launchWide(const SkinnyParams& params) {
  if (params.rows <= 8) return launchSkinny<2, 1, kWideStages, kIsGated>(params);
  if (params.rows <= 16) return launchSkinny<2, 2, kWideStages, kIsGated>(params);
  if (params.rows <= 32) return launchSkinny<2, 4, kWideStages, kIsGated>(params);
  return launchSkinny<2, 8, kWideStages, kIsGated>(params);
}

}  // namespace

bool skinnyTakes(const GranaryLinear& a) {
  return a.rows <= kMaxRows && areTensorOperands(a);
}

int32_t skinnyLinear(const GranaryLinear& a, ProductKernel kernel) {
  const SkinnyParams params = paramsOf(a, 0);
  if (kernel == ProductKernel::kNarrow && a.rows <= 8)
    return launchSkinny<1, 1, kNarrowStages, false>(params);
  if (kernel == ProductKernel::kNarrow && a.rows <= 16)
    return launchSkinny<1, 2, kNarrowStages, false>(params);
  return launchWide<false>(params);
}

int32_t skinnyGatedLinear(const GranaryLinear& a, int32_t activation, ProductKernel) {
  return launchWide<true>(paramsOf(a, activation));
}

}  // namespace granary
