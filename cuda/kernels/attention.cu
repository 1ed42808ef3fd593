// Paged attention: checks a shape, prepares the parameters and launches the chosen kernel and its merge.
#include "attention-choice.h"
#include "attention-launch.h"
#include "attention-loaded.h"
#include "attention-merge.cuh"
#include "paged-attention-scalar.cuh"
#include "paged-decode.cuh"
#include "paged-prefill.cuh"
#include "runtime.h"
#include "tensor-map.h"

using namespace granary;

namespace {

constexpr int64_t kScratchAlignment = 256;
constexpr int32_t kMaxHeadDim = 512;

// Calls `visit` with the instances of a padded head dimension.
template <typename Visitor>
int32_t withInstances(int32_t paddedDim, Visitor visit) {
  switch (paddedDim) {
    case 64: return visit(AttentionInstances<64>{});
    case 128: return visit(AttentionInstances<128>{});
    case 192: return visit(AttentionInstances<192>{});
    default: return visit(AttentionInstances<256>{});
  }
}

int64_t statsOffset(const GranaryAttention& a, const AttentionChoice& choice) {
  return alignUp(choice.partialRows * a.vHeadDim * static_cast<int64_t>(sizeof(float)), kScratchAlignment);
}

int32_t checkShape(const GranaryAttention& a) {
  GRANARY_REQUIRE(a.numSeqs >= 0 && a.maxQueryTokens > 0 && a.maxSeqLen > 0,
                  "attention: %d sequences of up to %d queries", a.numSeqs, a.maxQueryTokens);
  GRANARY_REQUIRE(a.numKvHeads > 0 && a.numQHeads > 0 && a.numQHeads % a.numKvHeads == 0,
                  "attention: %d and %d heads", a.numQHeads, a.numKvHeads);
  GRANARY_REQUIRE(a.headDim > 0 && a.vHeadDim > 0 && widerDimOf(a) <= kMaxHeadDim,
                  "attention: head dimensions %d and %d", a.headDim, a.vHeadDim);
  GRANARY_REQUIRE(isFloat(a.dtype) && isFloat(a.kvDtype), "attention: dtypes %d, %d", a.dtype, a.kvDtype);
  GRANARY_REQUIRE(a.pageSize > 0 && a.tableWidth > 0, "attention: pages of %d, %d a row", a.pageSize,
                  a.tableWidth);
  GRANARY_REQUIRE(a.queryStarts != 0 || (a.tokensPerRow > 0 && a.tokensPerRow <= a.maxQueryTokens),
                  "attention: %d tokens a row, at most %d", a.tokensPerRow, a.maxQueryTokens);
  return GRANARY_OK;
}

AttentionParams paramsOf(const GranaryAttention& a, const AttentionChoice& choice) {
  AttentionParams p{};
  p.q = pointer<void>(a.q);
  p.kCache = pointer<char>(a.kCache);
  p.vCache = pointer<char>(a.vCache);
  p.pageTable = pointer<int>(a.pageTable);
  p.tableRows = pointer<int>(a.tableRows);
  p.queryStarts = pointer<int>(a.queryStarts);
  p.seqLens = pointer<int>(a.seqLens);
  p.sinks = pointer<float>(a.sinks);
  p.out = pointer<void>(a.out);
  p.partialOutputs = pointer<float>(a.scratch);
  p.partialStats = reinterpret_cast<float*>(pointer<char>(a.scratch) + statsOffset(a, choice));
  p.qStride = a.qStride;
  p.outStride = a.outStride;
  p.kPageStrideBytes = a.kPageStrideBytes;
  p.vPageStrideBytes = a.vPageStrideBytes;
  p.tableWidth = a.tableWidth;
  p.pageSize = a.pageSize;
  p.pageShift = (a.pageSize & (a.pageSize - 1)) == 0 ? __builtin_ctz(a.pageSize) : -1;
  p.numSeqs = a.numSeqs;
  p.tokensPerRow = a.tokensPerRow;
  p.maxQueryTokens = a.maxQueryTokens;
  p.numQHeads = a.numQHeads;
  p.numKvHeads = a.numKvHeads;
  p.headDim = a.headDim;
  p.vHeadDim = a.vHeadDim;
  p.group = a.numQHeads / a.numKvHeads;
  p.windowLeft = a.windowLeft;
  p.tileRows = choice.tileRows;
  p.numSplits = choice.numSplits;
  p.minSplitKeys = choice.minSplitKeys;
  p.scale = a.scale;
  p.softcap = a.softcap;
  return p;
}

int32_t launchScalar(const GranaryAttention& a, const AttentionParams& p) {
  constexpr int kThreads = kScalarWarps * kWarpSize;
  const dim3 grid(p.numSplits, ceilDivide(static_cast<int64_t>(a.maxQueryTokens) * a.numQHeads, kScalarWarps),
                  a.numSeqs);
  const bool isWide = cachesAreWide(a);
  if (widerDimOf(a) > kAheadMaxDim) {
    const LoadedKernel kernel = loadedScalarKernel(widerDimOf(a), a.dtype, a.kvDtype, isWide);
    if (kernel.function != nullptr)
      return launchFunction(kernel.function, "attention", grid, kThreads, 0, p);
    return fail(GRANARY_UNSUPPORTED, "attention: no kernel was compiled for head dimension %d",
                widerDimOf(a));
  }
  return withFloat(a.dtype, [&](auto element) {
    return withFloat(a.kvDtype, [&](auto kvElement) {
      using T = decltype(element);
      using TKv = decltype(kvElement);
      constexpr auto kWide = pagedAttentionScalarKernel<T, TKv, 8, kAheadMaxDim>;
      constexpr auto kNarrow = pagedAttentionScalarKernel<T, TKv, 1, kAheadMaxDim>;
      return isWide ? launch<kWide>("attention", grid, kThreads, 0, p)
                    : launch<kNarrow>("attention", grid, kThreads, 0, p);
    });
  });
}

int32_t launchHopper(const GranaryAttention& a, const AttentionChoice& choice, const AttentionParams& p) {
  const bool isDecode = choice.path == AttentionPath::kHopperDecode;
  const int32_t valueDim = hopperPrefillValueDim(choice.paddedDim, a.vHeadDim);
  const int32_t boxRows =
      boxRowsOf(a.pageSize, isDecode ? kUnitKeys : hopperPrefillKeys(choice.paddedDim, valueDim));
  TensorMap keyMap, valueMap;
  GRANARY_TRY(encodeCacheMap(CacheLayout{a.kCache, a.kPageStrideBytes, a.pageSize, a.numKvHeads, a.headDim},
                             boxRows, keyMap));
  GRANARY_TRY(encodeCacheMap(CacheLayout{a.vCache, a.vPageStrideBytes, a.pageSize, a.numKvHeads, a.vHeadDim},
                             boxRows, valueMap));
  const dim3 grid(choice.numSplits, a.numKvHeads * choice.numTiles, a.numSeqs);
  return withInstances(choice.paddedDim, [&](auto instances) {
    if (!isDecode) return instances.hopperPrefill(grid, HopperPrefillParams{keyMap, valueMap, p, boxRows});
    return instances.hopperDecode(HopperDecodeParams{keyMap, valueMap, p, choice.numGroups, boxRows});
  });
}

int32_t launchDecode(const AttentionChoice& choice, dim3 grid, const AttentionParams& p) {
  const LoadedKernel kernel = loadedTileKernel(GRANARY_ATTENTION_DECODE, choice.exactDim);
  if (kernel.function != nullptr && kernel.sharedBytes <= attentionSharedLimit()) {
    constexpr int kThreads = kDecodeWarps * kWarpSize;
    return launchFunction(kernel.function, "attention", grid, kThreads, kernel.sharedBytes, p);
  }
  return withInstances(choice.paddedDim,
                       [&](auto instances) { return instances.decode(grid, attentionSharedLimit(), p); });
}

int32_t launchPrefill(const AttentionChoice& choice, dim3 grid, const AttentionParams& p) {
  const LoadedKernel kernel = loadedTileKernel(GRANARY_ATTENTION_PREFILL, choice.exactDim);
  if (kernel.function != nullptr) {
    return launchFunction(kernel.function, "attention", grid, kPrefillThreads, kernel.sharedBytes, p);
  }
  return withInstances(choice.paddedDim, [&](auto instances) { return instances.prefill(grid, p); });
}

int32_t launchPath(const GranaryAttention& a, const AttentionChoice& choice, const AttentionParams& p) {
  const dim3 grid(choice.numSplits, a.numKvHeads * choice.numTiles, a.numSeqs);
  switch (choice.path) {
    case AttentionPath::kScalar: return launchScalar(a, p);
    case AttentionPath::kDecode: return launchDecode(choice, grid, p);
    case AttentionPath::kPrefill: return launchPrefill(choice, grid, p);
    default: return launchHopper(a, choice, p);
  }
}

int32_t launchMerge(const GranaryAttention& a, const AttentionParams& p) {
  constexpr int kThreads = kMergeWarps * kWarpSize;
  const dim3 grid(ceilDivide(a.numQHeads, kMergeWarps), a.maxQueryTokens, a.numSeqs);
  return withFloat(a.dtype, [&](auto element) {
    constexpr auto kNarrow = attentionMergeKernel<decltype(element), kAheadMaxDim>;
    constexpr auto kWide = attentionMergeKernel<decltype(element), kMaxHeadDim>;
    return a.vHeadDim <= kAheadMaxDim ? launchEarly<kNarrow>("attention merge", grid, kThreads, 0, p)
                                      : launchEarly<kWide>("attention merge", grid, kThreads, 0, p);
  });
}

}  // namespace

extern "C" {

// Enough for these arguments and for any with fewer sequences, queries or keys.
int64_t granary_attention_scratch_bytes(const GranaryAttention* args) {
  const int32_t status = checkShape(*args);
  if (status != GRANARY_OK) return -status;
  const int64_t rows = boundOfPartialRows(*args);
  return rows == 0 ? 0
                   : rows * (args->vHeadDim + 2) * static_cast<int64_t>(sizeof(float)) + kScratchAlignment;
}

int32_t granary_attention(const GranaryAttention* args) {
  const GranaryAttention& a = *args;
  GRANARY_TRY(enter());
  GRANARY_TRY(checkShape(a));
  if (a.numSeqs == 0) return GRANARY_OK;
  const AttentionChoice choice = chooseAttention(a);
  GRANARY_REQUIRE(choice.partialRows == 0 || a.scratch != 0, "attention: no scratch for %lld partial rows",
                  static_cast<long long>(choice.partialRows));
  const AttentionParams p = paramsOf(a, choice);
  GRANARY_TRY(launchPath(a, choice, p));
  return choice.numSplits == 1 ? GRANARY_OK : launchMerge(a, p);
}

}  // extern "C"
