// Launchers of mixture-of-experts routing and products.
#include "moe-experts.cuh"
#include "moe-plan.cuh"
#include "moe-route.cuh"
#include "runtime.h"

using namespace granary;

static_assert(kRoutingSoftmaxTopK == GRANARY_SOFTMAX_TOPK &&
                  kRoutingSoftmaxTopKNorm == GRANARY_SOFTMAX_TOPK_NORM &&
                  kRoutingTopKSoftmax == GRANARY_TOPK_SOFTMAX,
              "routing numbers");

namespace {

constexpr int64_t kScratchAlignment = 256;

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
  const dim3 gateUpGrid(ceilDivide(a.inner, kTileSide), s.maxTiles),
      downGrid(ceilDivide(a.hidden, kTileSide), s.maxTiles);
  GRANARY_TRY((launch<moeGateUpKernel<T, TWeight>>("moe gate and up", gateUpGrid, kTileThreads, 0, params)));
  GRANARY_TRY((launch<moeDownKernel<T, TWeight>>("moe down", downGrid, kTileThreads, 0, params)));
  const dim3 sumGrid(a.rows, ceilDivide(a.hidden, kMoeSumThreads));
  return launch<moeSumKernel<T, TWeight>>("moe sum", sumGrid, kMoeSumThreads, 0, params);
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
  return launch<moeRouteKernel>("moe_route", dim3(ceilDivide(a.rows, kRouteWarps)), kRouteWarps * kWarpSize,
                                0, params);
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
  GRANARY_TRY(launch<moePlanKernel>("moe plan", dim3(1), kMoePlanThreads, 0, plan));
  return withFloat(a.dtype, [&](auto element) {
    return withFloat(a.weightDtype, [&](auto weight) {
      return launchExperts<decltype(element), decltype(weight)>(a, scratch);
    });
  });
}

}  // extern "C"
