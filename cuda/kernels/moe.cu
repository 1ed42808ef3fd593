// Launchers of mixture-of-experts routing and products.
#include <type_traits>

#include "moe-experts.cuh"
#include "moe-hopper.cuh"
#include "moe-plan.cuh"
#include "moe-route.cuh"
#include "moe-skinny.cuh"
#include "moe-tensor.cuh"
#include "runtime.h"
#include "tensor-map.h"

using namespace granary;

static_assert(kRoutingSoftmaxTopK == GRANARY_SOFTMAX_TOPK &&
                  kRoutingSoftmaxTopKNorm == GRANARY_SOFTMAX_TOPK_NORM &&
                  kRoutingTopKSoftmax == GRANARY_TOPK_SOFTMAX,
              "routing numbers");

namespace {

constexpr int64_t kScratchAlignment = 256;
constexpr int64_t kMaxGridRows = 65535;
constexpr int32_t kMaxNarrowRows = 64;
constexpr int32_t kWideTile = 128, kNarrowTile = 64;  // assignments, for the warpgroup's tensor cores
constexpr int64_t kManyAssignments = 48;              // of an expert, in the mean: then tiles are wide

struct Scratch {
  int64_t tileExperts, sliceCounts, assignments, activations, products, bytes;  // offsets, then the whole
};

// Every expert in use can have one tile that is not full.
int64_t maxTiles(const GranaryMoeExperts& a, int32_t tileRows) {
  const int64_t numAssignments = static_cast<int64_t>(a.rows) * a.topK;
  return numAssignments / tileRows + (numAssignments < a.numExperts ? numAssignments : a.numExperts);
}

// Blocks that plan.
int64_t numSlices(int64_t numAssignments) {
  const int64_t slices = ceilDivide(numAssignments, kMoeSliceAssignments);
  return slices < kMoeMaxSlices ? slices : kMoeMaxSlices;
}

// The same for every size of tiles.
Scratch scratchOf(const GranaryMoeExperts& a) {
  Scratch s{};
  const int64_t numAssignments = static_cast<int64_t>(a.rows) * a.topK;
  const auto behind = [](int64_t begin, int64_t count, int64_t bytes) {
    return alignUp(begin + count * bytes, kScratchAlignment);
  };
  s.sliceCounts = behind(s.tileExperts, maxTiles(a, kTileSide), sizeof(int32_t));
  s.assignments = behind(s.sliceCounts, numSlices(numAssignments) * a.numExperts, sizeof(int32_t));
  s.activations = behind(s.assignments, maxTiles(a, kWideTile) * kWideTile, sizeof(int32_t));
  s.products = behind(s.activations, numAssignments * a.inner, bytesOf(a.dtype));
  s.bytes = behind(s.products, numAssignments * a.hidden, bytesOf(a.dtype));
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
  GRANARY_REQUIRE(maxTiles(a, kTileSide) <= kMaxGridRows, "moe_experts: %d rows of %d experts", a.rows,
                  a.topK);
  return GRANARY_OK;
}

static_assert(kTensorDepth == kMoeStepColumns && kTensorDepth == kSkinnyDepth,
              "one depth suits every kernel");

// Operands that the tensor cores take as they are.
bool areTensorOperands(const GranaryMoeExperts& a) {
  return a.hidden % kTensorDepth == 0 && a.inner % kTensorDepth == 0 && a.xStride % kChunkElements == 0 &&
         a.x % kChunkBytes == 0 && a.gateUp % kChunkBytes == 0 && a.down % kChunkBytes == 0 &&
         a.gateUpBias % kChunkBytes == 0 && a.downBias % kChunkBytes == 0;
}

template <typename T, typename TWeight>
MoeExpertsParams<T, TWeight> paramsOf(const GranaryMoeExperts& a) {
  const Scratch s = scratchOf(a);
  char* scratch = pointer<char>(a.scratch);
  return {pointer<T>(a.x),
          pointer<TWeight>(a.gateUp),
          pointer<TWeight>(a.down),
          pointer<float>(a.gateUpBias),
          pointer<float>(a.downBias),
          pointer<float>(a.weights),
          pointer<T>(a.residual),
          pointer<T>(a.out),
          pointer<int>(a.ids),
          reinterpret_cast<int*>(scratch + s.tileExperts),
          reinterpret_cast<int*>(scratch + s.assignments),
          reinterpret_cast<T*>(scratch + s.activations),
          reinterpret_cast<T*>(scratch + s.products),
          a.xStride,
          a.residualStride,
          a.outStride,
          a.rows,
          a.hidden,
          a.inner,
          a.numExperts,
          a.topK,
          a.activation};
}

int32_t launchPlan(const GranaryMoeExperts& a, int32_t tileRows) {
  const Scratch s = scratchOf(a);
  const auto array = [&](int64_t offset) { return pointer<int>(a.scratch + offset); };
  const MoePlanParams params{pointer<int>(a.ids),
                             array(s.sliceCounts),
                             array(s.tileExperts),
                             array(s.assignments),
                             a.rows * a.topK,
                             a.numExperts,
                             static_cast<int>(maxTiles(a, tileRows)),
                             tileRows};
  const dim3 grid(numSlices(params.numAssignments));
  if (grid.x > 1) GRANARY_TRY(launchEarly<moeCountKernel>("moe count", grid, kMoePlanThreads, 0, params));
  return launchEarly<moePlanKernel>("moe plan", grid, kMoePlanThreads, 0, params);
}

int32_t launchSkinny(const GranaryMoeExperts& a, const MoeBf16Params& params) {
  constexpr int kTiles = 2, kStages = 2;
  using Shape = SkinnyShape<kTiles, 1, kStages>;
  const unsigned numAssignments = a.rows * a.topK;
  const dim3 gateUpGrid(ceilDivide(2 * static_cast<int64_t>(a.inner), Shape::kWeightRows), numAssignments);
  const dim3 downGrid(ceilDivide(a.hidden, Shape::kWeightRows), numAssignments);
  GRANARY_TRY((launchEarly<moeSkinnyKernel<kTiles, kStages, true>>(
      "moe gate and up", gateUpGrid, kSkinnyThreads, Shape::kSharedBytes, params)));
  return launchEarly<moeSkinnyKernel<kTiles, kStages, false>>("moe down", downGrid, kSkinnyThreads,
                                                              Shape::kSharedBytes, params);
}

template <int kAssignments>
int32_t launchHopper(const GranaryMoeExperts& a, const MoeBf16Params& params) {
  constexpr int kSharedBytes = MoeHopperShape<kAssignments>::kSharedBytes;
  GRANARY_TRY(launchPlan(a, kAssignments));
  const int64_t numTiles = maxTiles(a, kAssignments), gateUpRows = 2ll * a.inner;
  MoeHopperParams gateUp{{}, params}, down{{}, params};
  const MatrixLayout gateUpLayout{a.gateUp, a.numExperts * gateUpRows, a.hidden, a.hidden};
  const MatrixLayout downLayout{a.down, static_cast<int64_t>(a.numExperts) * a.hidden, a.inner, a.inner};
  GRANARY_TRY(encodeMatrixMap(gateUpLayout, kMoeBoxRows, gateUp.weightMap));
  GRANARY_TRY(encodeMatrixMap(downLayout, kMoeBoxRows, down.weightMap));
  const dim3 gateUpGrid(ceilDivide(gateUpRows, kMoeWeightRows), numTiles);
  const dim3 downGrid(ceilDivide(a.hidden, kMoeWeightRows), numTiles);
  GRANARY_TRY((launchEarly<moeHopperKernel<kAssignments, true>>("moe gate and up", gateUpGrid,
                                                                kMoeHopperThreads, kSharedBytes, gateUp)));
  return launchEarly<moeHopperKernel<kAssignments, false>>("moe down", downGrid, kMoeHopperThreads,
                                                           kSharedBytes, down);
}

template <int kColumnWarps>
int32_t launchTensor(const GranaryMoeExperts& a, const MoeBf16Params& params) {
  using Shape = TensorShape<kColumnWarps>;
  GRANARY_TRY(launchPlan(a, kTileSide));
  const int64_t numTiles = maxTiles(a, kTileSide);
  const dim3 gateUpGrid(ceilDivide(2 * static_cast<int64_t>(a.inner), Shape::kWeightRows), numTiles);
  const dim3 downGrid(ceilDivide(a.hidden, Shape::kWeightRows), numTiles);
  GRANARY_TRY((launchEarly<moeTensorGateUpKernel<kColumnWarps>>(
      "moe gate and up", gateUpGrid, Shape::kThreads, Shape::kSharedBytes, params)));
  return launchEarly<moeTensorDownKernel<kColumnWarps>>("moe down", downGrid, Shape::kThreads,
                                                        Shape::kSharedBytes, params);
}

int32_t launchBf16(const GranaryMoeExperts& a, const MoeBf16Params& params) {
  const int64_t numAssignments = static_cast<int64_t>(a.rows) * a.topK;
  if (numAssignments <= kMoeSkinnyMaxAssignments) return launchSkinny(a, params);
  if (runtime.hasHopperKernels) {
    const bool isMany = numAssignments >= kManyAssignments * a.numExperts;
    return isMany ? launchHopper<kWideTile>(a, params) : launchHopper<kNarrowTile>(a, params);
  }
  // Narrow blocks spread the weights of few experts over more of the card.
  return a.rows <= kMaxNarrowRows ? launchTensor<2>(a, params) : launchTensor<4>(a, params);
}

template <typename T, typename TWeight>
int32_t launchProducts(const GranaryMoeExperts& a, const MoeExpertsParams<T, TWeight>& params) {
  if constexpr (std::is_same_v<T, Bf16> && std::is_same_v<TWeight, Bf16>) {
    if (areTensorOperands(a)) return launchBf16(a, params);
  }
  GRANARY_TRY(launchPlan(a, kTileSide));
  const int64_t numTiles = maxTiles(a, kTileSide);
  const dim3 gateUpGrid(ceilDivide(a.inner, kTileSide), numTiles);
  const dim3 downGrid(ceilDivide(a.hidden, kTileSide), numTiles);
  GRANARY_TRY(
      (launchEarly<moeGateUpKernel<T, TWeight>>("moe gate and up", gateUpGrid, kTileThreads, 0, params)));
  return launchEarly<moeDownKernel<T, TWeight>>("moe down", downGrid, kTileThreads, 0, params);
}

template <typename T, typename TWeight>
int32_t launchExperts(const GranaryMoeExperts& a) {
  const auto params = paramsOf<T, TWeight>(a);
  GRANARY_TRY(launchProducts(a, params));
  constexpr int kWidth = 4;
  if (isWide(a.out, a.outStride, a.hidden) && isWide(a.residual, a.residualStride, a.hidden)) {
    const dim3 grid(a.rows, ceilDivide(a.hidden, kMoeSumThreads * kWidth));
    return launchEarly<moeSumKernel<T, TWeight, kWidth>>("moe sum", grid, kMoeSumThreads, 0, params);
  }
  const dim3 grid(a.rows, ceilDivide(a.hidden, kMoeSumThreads));
  return launchEarly<moeSumKernel<T, TWeight, 1>>("moe sum", grid, kMoeSumThreads, 0, params);
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
  GRANARY_REQUIRE(a.scratch != 0 && a.scratch % kChunkBytes == 0, "moe_experts: scratch at %lld",
                  static_cast<long long>(a.scratch));
  GRANARY_TRY(checkIds("moe_experts ids", a.ids, static_cast<int64_t>(a.rows) * a.topK, 0, a.numExperts));
  return withFloat(a.dtype, [&](auto element) {
    return withFloat(a.weightDtype, [&](auto weight) {
      return launchExperts<decltype(element), decltype(weight)>(a);
    });
  });
}

}  // extern "C"
