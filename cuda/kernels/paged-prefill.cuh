// Paged attention of many queries in bf16 on mma.sync (compute capability 8.0 and later): causal, over a
// cached prefix and the new tokens alike, both read from the pages.
//   q, caches, pageTable, seqLens, out  as in paged-decode.cuh
// One block of four warps a (tile of 64 packed query rows, KV head, split), 16 rows a warp; K and V pass
// through two stages of kKeys keys that the whole block shares. Longest tiles come first. Bound: tensor
// cores, 4 * headDim operations a (row, key).
#pragma once
#include "attention-tile.cuh"

constexpr int kPrefillWarps = 4;
constexpr int kPrefillRows = 64;
constexpr int kPrefillThreads = kPrefillWarps * kWarpSize;
constexpr int kPrefillStages = 2;

// What two stages leave room for in 99 KB.
constexpr int prefillKeys(int dim) {
  return dim <= 128 ? 64 : 32;
}
constexpr int prefillSharedBytes(int dim) {
  return (kPrefillRows + kPrefillStages * 2 * prefillKeys(dim)) * tileRowBytes(dim);
}

template <int kDim>
struct PrefillShape {
  static constexpr int kKeys = prefillKeys(kDim);
  static constexpr int kTileBytes = kKeys * TileShape<kDim>::kRowBytes;
  static constexpr int kQueryBytes = kPrefillRows * TileShape<kDim>::kRowBytes;
  static constexpr int kSharedBytes = prefillSharedBytes(kDim);
  static_assert(kSharedBytes == kQueryBytes + kPrefillStages * 2 * kTileBytes, "queries, then the stages");
};

// Starts the copies of the K and V rows of keys [firstKey, firstKey + kKeys); notes which of them lie in
// holes.
template <int kDim>
__device__ __forceinline__ void copyKeys(const AttentionParams& p, const int* table, int firstKey, int end,
                                         int kvHead, unsigned stage, unsigned* holes) {
  constexpr int kChunks = TileShape<kDim>::kChunks, kKeys = PrefillShape<kDim>::kKeys;
#pragma unroll
  for (int i = 0; i < kKeys * kChunks / kPrefillThreads; ++i) {
    const int index = i * kPrefillThreads + threadIdx.x, key = index / kChunks, chunk = index % kChunks;
    int rowInPage;
    const long long page = pageOf(p, table, firstKey + key, end, rowInPage);
    const int cacheRow = rowInPage * p.numKvHeads + kvHead, dim = chunk * kChunkElements;
    const unsigned offset = tileOffset<kChunks>(key, chunk);
    const bool hasK = page > 0 && dim < p.headDim, hasV = page > 0 && dim < p.vHeadDim;
    const char* k =
        p.kCache + page * p.kPageStrideBytes + (static_cast<long long>(cacheRow) * p.headDim + dim) * 2;
    const char* v =
        p.vCache + page * p.vPageStrideBytes + (static_cast<long long>(cacheRow) * p.vHeadDim + dim) * 2;
    copyChunkAsync(stage + offset, hasK ? k : p.kCache, hasK);
    copyChunkAsync(stage + PrefillShape<kDim>::kTileBytes + offset, hasV ? v : p.vCache, hasV);
  }
  if (threadIdx.x < kKeys) {
    int rowInPage;
    const unsigned mask =
        __ballot_sync(kFullWarp, pageOf(p, table, firstKey + threadIdx.x, end, rowInPage) == 0);
    if (threadIdx.x % kWarpSize == 0) holes[threadIdx.x / kWarpSize] = mask;
  }
}

// Rows of the warp's tile and what they see.
struct PrefillRows {
  int first[2], last[2];     // keys of this lane's two rows
  int wholeBegin, wholeEnd;  // every row of the warp sees all of [wholeBegin, wholeEnd)
};

__device__ __forceinline__ PrefillRows rowsOfWarp(const AttentionParams& p, const SequenceQueries& queries,
                                                  int firstRow) {
  PrefillRows rows;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int packed = firstRow + threadIdx.x % kWarpSize / 4 + row * 8;
    rows.last[row] = queries.firstPosition + packed / p.group;
    rows.first[row] = firstKeyOf(p, rows.last[row]);
  }
  rows.wholeEnd = queries.firstPosition + firstRow / p.group + 1;
  rows.wholeBegin = firstKeyOf(p, queries.firstPosition + (firstRow + 15) / p.group);
  return rows;
}

template <int kDim>
__device__ __forceinline__ void writePrefill(const AttentionParams& p, const RowState<kDim>& state,
                                             const SequenceQueries& queries, int firstRow, int kvHead) {
  const int lane = threadIdx.x % kWarpSize, seq = blockIdx.z;
  const bool isPartial = p.numSplits > 1;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int packed = firstRow + lane / 4 + row * 8, token = packed / p.group;
    const int head = kvHead * p.group + packed % p.group;
    if (token >= queries.numTokens) continue;
    const long long index = isPartial ? partialIndex(p, blockIdx.x, seq, token, head) : 0;
    const float scale = isPartial ? 1.0f : outputScale(p, head, state.maximum[row], state.sum[row]);
    auto* out = static_cast<Bf16*>(p.out) + (queries.firstRow + token) * p.outStride + head * p.vHeadDim;
#pragma unroll
    for (int column = 0; column < TileShape<kDim>::kColumns; ++column) {
      const int dim = column * 8 + lane % 4 * 2;
      if (dim >= p.vHeadDim) continue;
      const float values[2] = {state.output[column][2 * row] * scale,
                               state.output[column][2 * row + 1] * scale};
      if (isPartial) {
        storeFloats<float, 2>(p.partialOutputs + index * p.vHeadDim + dim, values);
      } else {
        storeFloats<Bf16, 2>(out + dim, values);
      }
    }
    if (isPartial && lane % 4 == 0) {
      p.partialStats[2 * index] = state.maximum[row];
      p.partialStats[2 * index + 1] = state.sum[row];
    }
  }
}

// Grid (splits, KV heads * tiles, sequences). Dynamic shared memory: PrefillShape<kDim>::kSharedBytes.
template <int kDim>
__global__ void __launch_bounds__(kPrefillThreads)
    pagedPrefillKernel(const __grid_constant__ AttentionParams p) {
  constexpr int kKeys = PrefillShape<kDim>::kKeys;
  constexpr int kTileBytes = PrefillShape<kDim>::kTileBytes, kStageBytes = 2 * kTileBytes;
  extern __shared__ __align__(128) char memory[];
  __shared__ unsigned holes[kPrefillStages][2];
  const int seq = blockIdx.z, kvHead = blockIdx.y % p.numKvHeads;
  const int tile = gridDim.y / p.numKvHeads - 1 - blockIdx.y / p.numKvHeads;
  const SequenceQueries queries = queriesOf(p, seq);
  if (tile * kPrefillRows >= queries.numTokens * p.group) return;
  const KeyRange range = rangeOfSplit(p, visibleKeys(p, queries, tile), blockIdx.x);
  if (range.begin == range.end) return;

  const unsigned queryTile = sharedAddress(memory), stages = queryTile + PrefillShape<kDim>::kQueryBytes;
  const int* table = p.pageTable + static_cast<long long>(p.tableRows[seq]) * p.tableWidth;
  copyQueries<kDim>(p, queryTile, queries, kvHead, tile * kPrefillRows, kPrefillRows, threadIdx.x,
                    kPrefillThreads);
  copyKeys<kDim>(p, table, range.begin, range.end, kvHead, stages, holes[0]);
  commitCopies();
  if (threadIdx.x < kPrefillStages && kKeys <= 32) holes[threadIdx.x][1] = 0;

  const int warpRow = threadIdx.x / kWarpSize * 16, firstRow = tile * kPrefillRows + warpRow;
  const PrefillRows rows = rowsOfWarp(p, queries, firstRow);
  RowState<kDim> state;
  int stage = 0;
  for (int base = range.begin; base < range.end; base += kKeys, stage ^= 1) {
    waitCopies<0>();
    __syncthreads();  // the stage has arrived for every thread, and every warp is done with the other one
    if (base + kKeys < range.end) {
      copyKeys<kDim>(p, table, base + kKeys, range.end, kvHead, stages + (stage ^ 1) * kStageBytes,
                     holes[stage ^ 1]);
    }
    commitCopies();
    const unsigned keyTile = stages + stage * kStageBytes;
    const unsigned long long hidden = holes[stage][0] | static_cast<unsigned long long>(holes[stage][1])
                                                            << 32;
    const bool isWhole = hidden == 0 && base >= rows.wholeBegin && base + kKeys <= rows.wholeEnd;
    float scores[kKeys / 8][4] = {};
    scoreKeys<kDim, kKeys>(scores, queryTile, warpRow, keyTile, 0, p.headDim);
    maskScores<kKeys>(p, scores, base, rows.first, rows.last, hidden, isWhole);
    softmaxStep<kDim, kKeys>(state, scores);
    addValues<kDim, kKeys>(state, scores, keyTile + kTileBytes, 0, p.vHeadDim);
  }
  joinSums(state);
  writePrefill<kDim>(p, state, queries, firstRow, kvHead);
}
