// Chooses the attention kernel and the number of splits for a shape, and launches it.
//
// The choice depends on the bounds in the argument block alone, never on lengths, so that a recorded graph
// stays valid.
#include "attention-launch.h"
#include "attention-merge.cuh"
#include "paged-attention-scalar.cuh"
#include "runtime.h"

using namespace granary;

namespace {

constexpr int64_t kScratchAlignment = 256;
constexpr int32_t kMaxSplits = 128;
constexpr int32_t kMinSplitKeys = 256;           // below this the merge costs more than the split saves
constexpr int32_t kBlocksPerMultiprocessor = 4;  // enough blocks in flight or waiting to even out the ends

enum class Path { kScalar, kDecode, kPrefill };

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

struct Choice {
  Path path;
  int32_t paddedDim;  // 64, 128, 192 or 256
  int32_t tileRows;
  int32_t numTiles;  // a sequence and KV head
  int32_t numSplits;
};

int32_t sharedLimit() {
  constexpr int32_t kReservedBytes = 1024;  // for what a kernel declares statically
  return runtime.sharedBytesPerBlock - kReservedBytes;
}

// True when every row of K and V can be moved 16 bytes at a time.
bool cachesAreWide(const GranaryAttention& a) {
  const int64_t misaligned = a.kCache | a.vCache | a.kPageStrideBytes | a.vPageStrideBytes;
  return misaligned % 16 == 0 && a.headDim % 8 == 0 && a.vHeadDim % 8 == 0;
}

// Blocks that fill the device: below that, splits multiply them.
int64_t wantedBlocks() {
  return static_cast<int64_t>(runtime.numMultiprocessors) * kBlocksPerMultiprocessor;
}

// Splits that the keys of a sequence are worth.
int64_t splitsOfKeys(const GranaryAttention& a) {
  int64_t keys = a.maxSeqLen;
  if (a.windowLeft >= 0) {
    const int64_t windowed = static_cast<int64_t>(a.windowLeft) + a.maxQueryTokens + kSplitAlignment;
    keys = windowed < keys ? windowed : keys;
  }
  const int64_t splits = ceilDivide(keys, kMinSplitKeys);
  return splits < kMaxSplits ? splits : kMaxSplits;
}

int32_t tileRowsOf(Path path) {
  return path == Path::kScalar ? 1 : path == Path::kDecode ? kDecodeTileRows : kPrefillTileRows;
}

Choice choose(const GranaryAttention& a) {
  Choice choice{};
  const int32_t group = a.numQHeads / a.numKvHeads, rows = a.maxQueryTokens * group;
  const int32_t largestDim = a.headDim > a.vHeadDim ? a.headDim : a.vHeadDim;
  choice.paddedDim = static_cast<int32_t>(alignUp(largestDim, 64));
  const bool isBf16 = a.dtype == GRANARY_BF16 && a.kvDtype == GRANARY_BF16;
  const bool takesTiles = isBf16 && cachesAreWide(a) && isWide(a.q, a.qStride, a.headDim) &&
                          a.outStride % 2 == 0 && a.out % 4 == 0;
  choice.path = !takesTiles ? Path::kScalar : rows <= kDecodeTileRows ? Path::kDecode : Path::kPrefill;
  if (choice.path == Path::kDecode && withInstances(choice.paddedDim, [](auto instances) {
                                        return instances.decodeSharedBytes();
                                      }) > sharedLimit()) {
    choice.path = Path::kPrefill;  // it needs less shared memory
  }
  choice.tileRows = tileRowsOf(choice.path);
  choice.numTiles = static_cast<int32_t>(ceilDivide(rows, choice.tileRows));
  const int64_t blocks = static_cast<int64_t>(a.numSeqs) * a.numKvHeads * choice.numTiles;
  const int64_t wanted = ceilDivide(wantedBlocks(), blocks), worth = splitsOfKeys(a);
  choice.numSplits = static_cast<int32_t>(worth < wanted ? worth : wanted);
  return choice;
}

int64_t statsOffset(const GranaryAttention& a, const Choice& choice) {
  const int64_t rows = static_cast<int64_t>(choice.numSplits) * a.numSeqs * a.maxQueryTokens * a.numQHeads;
  return alignUp(rows * a.vHeadDim * static_cast<int64_t>(sizeof(float)), kScratchAlignment);
}

// Rows of partial results that any launch within these bounds can leave. Where there is more than one split,
// blocks * splits is below twice the wanted blocks, and a block has tileRows rows. So the bound grows with
// the shape, as the need does not.
int64_t boundOfRows(const GranaryAttention& a) {
  const int64_t splits = splitsOfKeys(a);
  const bool canBeWide =
      a.maxQueryTokens * (a.numQHeads / a.numKvHeads) > kDecodeTileRows || alignUp(a.headDim, 64) > 128;
  const int64_t byBlocks = 2 * wantedBlocks() * (canBeWide ? kPrefillTileRows : kDecodeTileRows);
  const int64_t byShape = splits * a.numSeqs * a.maxQueryTokens * a.numQHeads;
  return splits == 1 ? 0 : byShape < byBlocks ? byShape : byBlocks;
}

int32_t checkShape(const GranaryAttention& a) {
  GRANARY_REQUIRE(a.numSeqs >= 0 && a.maxQueryTokens > 0 && a.maxSeqLen > 0,
                  "attention: %d sequences of up to %d queries", a.numSeqs, a.maxQueryTokens);
  GRANARY_REQUIRE(a.numKvHeads > 0 && a.numQHeads > 0 && a.numQHeads % a.numKvHeads == 0,
                  "attention: %d and %d heads", a.numQHeads, a.numKvHeads);
  GRANARY_REQUIRE(a.headDim > 0 && a.headDim <= 256 && a.vHeadDim > 0 && a.vHeadDim <= 256,
                  "attention: head dimensions %d and %d", a.headDim, a.vHeadDim);
  GRANARY_REQUIRE(isFloat(a.dtype) && isFloat(a.kvDtype), "attention: dtypes %d, %d", a.dtype, a.kvDtype);
  GRANARY_REQUIRE(a.pageSize > 0 && a.tableWidth > 0, "attention: pages of %d, %d a row", a.pageSize,
                  a.tableWidth);
  GRANARY_REQUIRE(a.queryStarts != 0 || (a.tokensPerRow > 0 && a.tokensPerRow <= a.maxQueryTokens),
                  "attention: %d tokens a row, at most %d", a.tokensPerRow, a.maxQueryTokens);
  return GRANARY_OK;
}

AttentionParams paramsOf(const GranaryAttention& a, const Choice& choice) {
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
  p.minSplitKeys = kMinSplitKeys;
  p.scale = a.scale;
  p.softcap = a.softcap;
  return p;
}

int32_t launchScalar(const GranaryAttention& a, const AttentionParams& p) {
  const dim3 grid(p.numSplits, ceilDivide(static_cast<int64_t>(a.maxQueryTokens) * a.numQHeads, kScalarWarps),
                  a.numSeqs);
  return withFloat(a.dtype, [&](auto element) {
    return withFloat(a.kvDtype, [&](auto kvElement) {
      constexpr auto kWide = pagedAttentionScalarKernel<decltype(element), decltype(kvElement), 8>;
      constexpr auto kNarrow = pagedAttentionScalarKernel<decltype(element), decltype(kvElement), 1>;
      return cachesAreWide(a) ? launch<kWide>("attention", grid, kScalarWarps * kWarpSize, 0, p)
                              : launch<kNarrow>("attention", grid, kScalarWarps * kWarpSize, 0, p);
    });
  });
}

}  // namespace

extern "C" {

// Enough for these arguments and for any with fewer sequences, queries or keys.
int64_t granary_attention_scratch_bytes(const GranaryAttention* args) {
  const int32_t status = checkShape(*args);
  if (status != GRANARY_OK) return -status;
  const int64_t rows = boundOfRows(*args);
  return rows == 0 ? 0
                   : rows * (args->vHeadDim + 2) * static_cast<int64_t>(sizeof(float)) + kScratchAlignment;
}

int32_t granary_attention(const GranaryAttention* args) {
  const GranaryAttention& a = *args;
  GRANARY_TRY(enter());
  GRANARY_TRY(checkShape(a));
  if (a.numSeqs == 0) return GRANARY_OK;
  const Choice choice = choose(a);
  GRANARY_REQUIRE(choice.numSplits == 1 || a.scratch != 0, "attention: no scratch for %d splits",
                  choice.numSplits);
  const AttentionParams p = paramsOf(a, choice);
  const dim3 grid(choice.numSplits, a.numKvHeads * choice.numTiles, a.numSeqs);
  switch (choice.path) {
    case Path::kScalar: GRANARY_TRY(launchScalar(a, p)); break;
    case Path::kDecode:
      GRANARY_TRY(withInstances(choice.paddedDim,
                                [&](auto instances) { return instances.decode(grid, sharedLimit(), p); }));
      break;
    case Path::kPrefill:
      GRANARY_TRY(
          withInstances(choice.paddedDim, [&](auto instances) { return instances.prefill(grid, p); }));
      break;
  }
  if (choice.numSplits == 1) return GRANARY_OK;
  const dim3 mergeGrid(ceilDivide(a.numQHeads, kMergeWarps), a.maxQueryTokens, a.numSeqs);
  return withFloat(a.dtype, [&](auto element) {
    return launch<attentionMergeKernel<decltype(element)>>("attention merge", mergeGrid,
                                                           kMergeWarps * kWarpSize, 0, p);
  });
}

}  // extern "C"
