// Chooses the attention kernel and the number of splits for a shape.
#include "attention-choice.h"

#include "attention-launch.h"
#include "paged-decode.cuh"

namespace granary {

namespace {

constexpr int32_t kMaxSplits = 128;
constexpr int32_t kMinSplitKeys = 256;           // below this the merge costs more than the split saves
constexpr int32_t kHopperMinSplitKeys = 512;     // a block of the wide kernel needs longer to come up
constexpr int32_t kBlocksPerMultiprocessor = 4;  // enough blocks in flight or waiting to even out the ends
constexpr int32_t kCopyGranularity = 16;         // keys; the copy engine's kernels take pages of multiples
constexpr int64_t kBusyShare = 90;               // percent of the best that is good enough with fewer splits

int32_t groupOf(const GranaryAttention& a) {
  return a.numQHeads / a.numKvHeads;
}

int32_t paddedDimOf(const GranaryAttention& a) {
  return static_cast<int32_t>(alignUp(widerDimOf(a), 64));
}

bool takesTiles(const GranaryAttention& a) {
  const bool isBf16 = a.dtype == GRANARY_BF16 && a.kvDtype == GRANARY_BF16;
  return widerDimOf(a) <= kAheadMaxDim && isBf16 && cachesAreWide(a) && isWide(a.q, a.qStride, a.headDim) &&
         a.outStride % 2 == 0 && a.out % 4 == 0;
}

// Groups of one block a KV head, as many as fit the device at once.
int32_t persistentGroups(const GranaryAttention& a) {
  const int32_t groups = runtime.numMultiprocessors / a.numKvHeads;
  return groups > 0 ? groups : 1;
}

AttentionPath pathOf(const GranaryAttention& a) {
  if (!takesTiles(a)) return AttentionPath::kScalar;
  const bool isDecode = a.maxQueryTokens * groupOf(a) <= kDecodeTileRows;
  const int32_t dim = paddedDimOf(a);
  if (runtime.hasHopperKernels && a.pageSize % kCopyGranularity == 0 && a.scale > 0.0f) {
    const bool fits = persistentGroups(a) * a.numKvHeads <= kHopperDecodeMaxBlocks;
    if (isDecode && fits) return AttentionPath::kHopperDecode;
    return AttentionPath::kHopperPrefill;
  }
  // The portable prefill kernel needs less shared memory than the decode kernel.
  const bool fits = decodeSharedBytes(dim, 2) <= attentionSharedLimit();
  return isDecode && fits ? AttentionPath::kDecode : AttentionPath::kPrefill;
}

int32_t tileRowsOf(AttentionPath path) {
  switch (path) {
    case AttentionPath::kScalar: return 1;
    case AttentionPath::kPrefill: return kPrefillTileRows;
    case AttentionPath::kHopperPrefill: return kHopperPrefillRows;
    default: return kDecodeTileRows;
  }
}

// Blocks that fill the device: below that, splits multiply them.
int64_t wantedBlocks() {
  return static_cast<int64_t>(runtime.numMultiprocessors) * kBlocksPerMultiprocessor;
}

// Splits that the keys of a sequence are worth.
int64_t splitsOfKeys(const GranaryAttention& a, int32_t minSplitKeys) {
  int64_t keys = a.maxSeqLen;
  if (a.windowLeft >= 0) {
    const int64_t windowed = static_cast<int64_t>(a.windowLeft) + a.maxQueryTokens + kSplitAlignment;
    keys = windowed < keys ? windowed : keys;
  }
  const int64_t splits = ceilDivide(keys, minSplitKeys);
  return splits < kMaxSplits ? splits : kMaxSplits;
}

// One block fits a multiprocessor: the fewest splits whose last wave is nearly full, within two waves.
int64_t splitsByWaves(int64_t blocks, int64_t worth) {
  const int64_t device = runtime.numMultiprocessors;
  const auto busyShare = [&](int64_t splits) {
    return 100 * blocks * splits / (ceilDivide(blocks * splits, device) * device);
  };
  int64_t limit = 2 * device / blocks;
  limit = limit < worth ? limit : worth;
  int64_t best = 0;
  for (int64_t splits = 1; splits <= limit; ++splits)
    best = best < busyShare(splits) ? busyShare(splits) : best;
  for (int64_t splits = 1; splits <= limit; ++splits) {
    if (busyShare(splits) * 100 >= best * kBusyShare) return splits;
  }
  return 1;
}

// A block of the persistent kernel shares its first and its last sequence.
int64_t persistentRows(const GranaryAttention& a) {
  return int64_t{2} * persistentGroups(a) * a.numKvHeads * kHopperDecodeRows;
}

}  // namespace

int32_t attentionSharedLimit() {
  constexpr int32_t kReservedBytes = 1024;  // for what a kernel declares statically
  return runtime.sharedBytesPerBlock - kReservedBytes;
}

int32_t widerDimOf(const GranaryAttention& a) {
  return a.headDim > a.vHeadDim ? a.headDim : a.vHeadDim;
}

bool cachesAreWide(const GranaryAttention& a) {
  const int64_t misaligned = a.kCache | a.vCache | a.kPageStrideBytes | a.vPageStrideBytes;
  return misaligned % 16 == 0 && a.headDim % 8 == 0 && a.vHeadDim % 8 == 0;
}

AttentionChoice chooseAttention(const GranaryAttention& a) {
  AttentionChoice choice{};
  choice.path = pathOf(a);
  choice.paddedDim = paddedDimOf(a);
  choice.exactDim = static_cast<int32_t>(alignUp(widerDimOf(a), widerDimOf(a) <= 128 ? 16 : 32));
  choice.tileRows = tileRowsOf(choice.path);
  choice.numTiles =
      static_cast<int32_t>(ceilDivide(static_cast<int64_t>(a.maxQueryTokens) * groupOf(a), choice.tileRows));
  choice.numSplits = 1;
  if (choice.path == AttentionPath::kHopperDecode) {
    choice.numGroups = persistentGroups(a);
    choice.partialRows = persistentRows(a);
    return choice;
  }
  const bool isHopper = choice.path == AttentionPath::kHopperPrefill;
  choice.minSplitKeys = isHopper ? kHopperMinSplitKeys : kMinSplitKeys;
  const int64_t blocks = static_cast<int64_t>(a.numSeqs) * a.numKvHeads * choice.numTiles;
  const int64_t worth = splitsOfKeys(a, choice.minSplitKeys);
  const int64_t wanted = ceilDivide(wantedBlocks(), blocks);
  const int64_t splits = isHopper ? splitsByWaves(blocks, worth) : worth < wanted ? worth : wanted;
  choice.numSplits = static_cast<int32_t>(splits);
  choice.partialRows = splits == 1 ? 0 : splits * a.numSeqs * a.maxQueryTokens * a.numQHeads;
  return choice;
}

// Where there is more than one split, blocks * splits is below twice the wanted blocks, and a block has
// tileRows rows; the wide kernel has at most two blocks a multiprocessor, of twice the rows. So the bound
// grows with the shape, as the need does not.
int64_t boundOfPartialRows(const GranaryAttention& a) {
  static_assert(2 * kHopperPrefillRows <= 2 * kBlocksPerMultiprocessor * kPrefillTileRows,
                "the bound covers the wide kernel");
  const int64_t splits = splitsOfKeys(a, kMinSplitKeys);
  const bool canBeWide = a.maxQueryTokens * groupOf(a) > kDecodeTileRows || alignUp(a.headDim, 64) > 128;
  const int64_t byBlocks = 2 * wantedBlocks() * (canBeWide ? kPrefillTileRows : kDecodeTileRows);
  const int64_t byShape = splits * a.numSeqs * a.maxQueryTokens * a.numQHeads;
  const int64_t split = splits == 1 ? 0 : byShape < byBlocks ? byShape : byBlocks;
  const int64_t persistent = runtime.hasHopperKernels && takesTiles(a) ? persistentRows(a) : 0;
  return split > persistent ? split : persistent;
}

}  // namespace granary
