// Launchers of mixture-of-experts routing and products.
#include <type_traits>

#include "moe-experts.cuh"
#include "moe-plan.cuh"
#include "moe-route.cuh"
#include "moe-tensor.cuh"
#include "runtime.h"

using namespace granary;

static_assert(kRoutingSoftmaxTopK == GRANARY_SOFTMAX_TOPK &&
                  kRoutingSoftmaxTopKNorm == GRANARY_SOFTMAX_TOPK_NORM &&
                  kRoutingTopKSoftmax == GRANARY_TOPK_SOFTMAX,
              "routing numbers");

namespace {

constexpr int64_t kScratchAlignment = 256;
constexpr int32_t kMaxNarrowRows = 64;

struct Scratch {
  int64_t maxTiles;
  int64_t tileExperts, assignments, activations, products, bytes;  // offsets, then the whole
};

Scratch scratchOf(const GranaryMoeExperts& a) {
  Scratch s{};
  const int64_t numAssignments = static_cast<int64_t>(a.rows) * a.topK;
  // Every expert in use can have one tile that is not full.
  s.maxTiles = numAssignments / kTileSide + (numAssignments < a.numExperts ? numAssignments : a.numExperts);
  s.assignments = alignUp(s.maxTiles * sizeof(int32_t), kScratchAlignment);
  s.activations = alignUp(s.assignments + s.maxTiles * kTileSide * sizeof(int32_t), kScratchAlignment);
  s.products = alignUp(s.activations + numAssignments * a.inner * bytesOf(a.dtype), kScratchAlignment);
  s.bytes = s.products + numAssignments * a.hidden * sizeof(float);
  return s;
}

int32_t checkExperts(const GranaryMoeExperts& a) {
  GRANARY_REQUIRE(a.rows >= 0 && a.hidden > 0 && a.inner > 0, "moe_experts: %d rows, %d, %d", a.rows,
                  a.hidden, a.inner);
  GRANARY_REQUIRE(
      a.numExperts > 0 && a.numExperts <= kRouteMaxExperts && a.topK > 0 && a.topK <= a.numExperts,
      "moe_experts: %d of %d experts", a.topK, a.numExperts);
  GRANARY_REQUIRE(isFloat(a.dtype) && isFloat(a.weightDtype), "moe_experts: dtypes %d, %d", a.dtype,
                  a.weightDtype);
  return GRANARY_OK;
}

// Operands that the tensor cores take as they are.
bool areTensorOperands(const GranaryMoeExperts& a) {
  return a.hidden % kMoeDepth == 0 && a.inner % kMoeDepth == 0 && a.xStride % kChunkElements == 0 &&
         a.x % kChunkBytes == 0 && a.gateUp % kChunkBytes == 0 && a.down % kChunkBytes == 0 &&
         a.scratch % kChunkBytes == 0;
}

template <int kColumnWarps>
int32_t launchTensor(const GranaryMoeExperts& a, const Scratch& s, const MoeBf16Params& params) {
  using Shape = MoeTensorShape<kColumnWarps>;
  const dim3 gateUpGrid(ceilDivide(2 * static_cast<int64_t>(a.inner), Shape::kWeightRows), s.maxTiles);
  const dim3 downGrid(ceilDivide(a.hidden, Shape::kWeightRows), s.maxTiles);
  GRANARY_TRY((launchEarly<moeTensorGateUpKernel<kColumnWarps>>(
      "moe gate and up", gateUpGrid, Shape::kThreads, Shape::kSharedBytes, params)));
  return launchEarly<moeTensorDownKernel<kColumnWarps>>("moe down", downGrid, Shape::kThreads,
                                                        Shape::kSharedBytes, params);
}

template <typename T, typename TWeight>
int32_t launchProducts(const GranaryMoeExperts& a, const Scratch& s,
                       const MoeExpertsParams<T, TWeight>& params) {
  if constexpr (std::is_same_v<T, Bf16> && std::is_same_v<TWeight, Bf16>) {
    // Narrow blocks spread the weights of few experts over more of the card.
    if (areTensorOperands(a) && a.rows <= kMaxNarrowRows) return launchTensor<2>(a, s, params);
    if (areTensorOperands(a)) return launchTensor<4>(a, s, params);
  }
  const dim3 gateUpGrid(ceilDivide(a.inner, kTileSide), s.maxTiles),
      downGrid(ceilDivide(a.hidden, kTileSide), s.maxTiles);
  GRANARY_TRY(
      (launchEarly<moeGateUpKernel<T, TWeight>>("moe gate and up", gateUpGrid, kTileThreads, 0, params)));
  return launchEarly<moeDownKernel<T, TWeight>>("moe down", downGrid, kTileThreads, 0, params);
}

template <typename T, typename TWeight>
int32_t launchExperts(const GranaryMoeExperts& a, const Scratch& s) {
  char* scratch = pointer<char>(a.scratch);
  const MoeExpertsParams<T, TWeight> params{pointer<T>(a.x),
                                            pointer<TWeight>(a.gateUp),
                                            pointer<TWeight>(a.down),
                                            pointer<float>(a.gateUpBias),
                                            pointer<float>(a.downBias),
                                            pointer<float>(a.weights),
                                            pointer<T>(a.residual),
                                            pointer<T>(a.out),
                                            reinterpret_cast<int*>(scratch),
                                            reinterpret_cast<int*>(scratch + s.assignments),
                                            reinterpret_cast<T*>(scratch + s.activations),
                                            reinterpret_cast<float*>(scratch + s.products),
                                            a.xStride,
                                            a.residualStride,
                                            a.outStride,
                                            a.rows,
                                            a.hidden,
                                            a.inner,
                                            a.topK,
                                            a.activation};
  GRANARY_TRY(launchProducts(a, s, params));
  const dim3 sumGrid(a.rows, ceilDivide(a.hidden, kMoeSumThreads));
  return launchEarly<moeSumKernel<T, TWeight>>("moe sum", sumGrid, kMoeSumThreads, 0, params);
}

}  // namespace

extern "C" {

int32_t granary_moe_route(const GranaryMoeRoute* args) {
  const GranaryMoeRoute& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.numExperts > 0 && a.topK > 0 && a.topK <= a.numExperts,
                  "moe_route: %d rows, %d of %d experts", a.rows, a.topK, a.numExperts);
  GRANARY_REQUIRE(a.routing >= GRANARY_SOFTMAX_TOPK && a.routing <= GRANARY_TOPK_SOFTMAX, "routing %d",
                  a.routing);
  if (a.rows == 0) return GRANARY_OK;
  const MoeRouteParams params{pointer<float>(a.logits),
                              pointer<int>(a.ids),
                              pointer<float>(a.weights),
                              a.rows,
                              a.numExperts,
                              a.topK,
                              a.routing};
  return launchEarly<moeRouteKernel>("moe_route", dim3(ceilDivide(a.rows, kRouteWarps)),
                                     kRouteWarps * kWarpSize, 0, params);
}

int64_t granary_moe_scratch_bytes(const GranaryMoeExperts* args) {
  const int32_t status = checkExperts(*args);
  return status == GRANARY_OK ? scratchOf(*args).bytes : -status;
}

int32_t granary_moe_experts(const GranaryMoeExperts* args) {
  const GranaryMoeExperts& a = *args;
  GRANARY_TRY(enter());
  GRANARY_TRY(checkExperts(a));
  if (a.rows == 0) return GRANARY_OK;
  GRANARY_REQUIRE(a.scratch != 0, "moe_experts: no scratch");
  GRANARY_TRY(checkIds("moe_experts ids", a.ids, static_cast<int64_t>(a.rows) * a.topK, 0, a.numExperts));
  const Scratch scratch = scratchOf(a);
  const MoePlanParams plan{pointer<int>(a.ids),
                           pointer<int>(a.scratch),
                           reinterpret_cast<int*>(pointer<char>(a.scratch) + scratch.assignments),
                           a.rows * a.topK,
                           a.numExperts,
                           static_cast<int>(scratch.maxTiles)};
  GRANARY_TRY(launchEarly<moePlanKernel>("moe plan", dim3(1), kMoePlanThreads, 0, plan));
  return withFloat(a.dtype, [&](auto element) {
    return withFloat(a.weightDtype, [&](auto weight) {
      return launchExperts<decltype(element), decltype(weight)>(a, scratch);
    });
  });
}

}  // extern "C"
