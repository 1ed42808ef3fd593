// Paged decode attention in bf16, split over the keys; the splits meet in attention-merge.cuh.
//   q                [rows, numQHeads * headDim]           bf16, with a stride
//   kCache, vCache   page-strided rows [pageSize, numKvHeads, dim]  bf16
//   pageTable        [?, tableWidth]                       int32; <= 0 is a hole, never read
//   seqLens          [numSeqs]                             int32, keys visible to the last query
//   out              [rows, numQHeads * vHeadDim]          bf16, or partials for the merge
// One block of four warps a (tile of 16 packed query rows, split): the group's query heads share each K and V
// read. Every warp streams its own blocks of 16 keys through its own ring of stages, so nothing but the end
// synchronises the block. Bound: HBM. Bytes = 2 * sum(seqLens) * numKvHeads * headDim * 2. Aim: 90 % of the
// best measured read rate.
#pragma once
#include "attention-tile.cuh"

constexpr int kDecodeWarps = 4;
constexpr int kDecodeRows = 16;
constexpr int kDecodeKeys = 16;  // a warp's block

constexpr int decodeSharedBytes(int dim, int stages) {
  const int queryBytes = kDecodeRows * tileRowBytes(dim);
  return queryBytes + kDecodeWarps * stages * 2 * kDecodeKeys * tileRowBytes(dim);
}

// kStages: 3 keep two blocks of copies in flight behind the one in use; 2 where shared memory is short.
template <int kDim, int kStages>
struct DecodeShape {
  static constexpr int kTileBytes = kDecodeKeys * TileShape<kDim>::kRowBytes;  // of K, and as much of V
  static constexpr int kQueryBytes = kDecodeRows * TileShape<kDim>::kRowBytes;
  static constexpr int kWarpBytes = kStages * 2 * kTileBytes;
  static constexpr int kSharedBytes = decodeSharedBytes(kDim, kStages);
  static_assert(kSharedBytes == kQueryBytes + kDecodeWarps * kWarpBytes, "queries, then the warps' rings");
  // The warps' outputs (f32) pass through the stages at the end.
  static_assert(kDecodeRows * kDim * 4 <= kWarpBytes, "an output tile fits into a warp's stages");
};

// A warp's walk over its blocks of keys: block i of the warp starts at begin + (i * kDecodeWarps + warp) *
// kDecodeKeys.
struct DecodeBlock {
  int page, rowInPage;  // of key lane % 16
};

__device__ __forceinline__ DecodeBlock findBlock(const AttentionParams& p, const int* table, int firstKey,
                                                 int end) {
  DecodeBlock block;
  block.page = pageOf(p, table, firstKey + threadIdx.x % kDecodeKeys, end, block.rowInPage);
  return block;
}

// Starts the copies of one block; every lane moves chunks of several keys.
template <int kDim>
__device__ __forceinline__ void copyBlock(const AttentionParams& p, const DecodeBlock& block, int kvHead,
                                          unsigned stage) {
  constexpr int kTileBytes = kDecodeKeys * TileShape<kDim>::kRowBytes;
  constexpr int kChunks = TileShape<kDim>::kChunks;
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int i = 0; i < kDecodeKeys * kChunks / kWarpSize; ++i) {
    const int index = i * kWarpSize + lane, key = index / kChunks, chunk = index % kChunks;
    const long long page = __shfl_sync(kFullWarp, block.page, key);
    const int rowInPage = __shfl_sync(kFullWarp, block.rowInPage, key);
    const int cacheRow = rowInPage * p.numKvHeads + kvHead, dim = chunk * kChunkElements;
    const unsigned offset = tileOffset<kChunks>(key, chunk);
    const bool hasK = page > 0 && dim < p.headDim, hasV = page > 0 && dim < p.vHeadDim;
    const char* k =
        p.kCache + page * p.kPageStrideBytes + (static_cast<long long>(cacheRow) * p.headDim + dim) * 2;
    const char* v =
        p.vCache + page * p.vPageStrideBytes + (static_cast<long long>(cacheRow) * p.vHeadDim + dim) * 2;
    copyChunkAsync(stage + offset, hasK ? k : p.kCache, hasK);
    copyChunkAsync(stage + kTileBytes + offset, hasV ? v : p.vCache, hasV);
  }
}

// Streams the warp's blocks of `range` and leaves its part of the softmax in `state`.
template <int kDim, int kStages>
__device__ __forceinline__ void decodeKeys(const AttentionParams& p, RowState<kDim>& state, const int* table,
                                           KeyRange range, int kvHead, const int (&first)[2],
                                           const int (&last)[2], unsigned queryTile, unsigned stages) {
  constexpr int kTileBytes = DecodeShape<kDim, kStages>::kTileBytes, kStageBytes = 2 * kTileBytes;
  constexpr int kStep = kDecodeWarps * kDecodeKeys;
  int copied = range.begin + threadIdx.x / kWarpSize * kDecodeKeys;  // first key of the next block to copy
  const int begin = copied;
  unsigned holes[kStages] = {};
  DecodeBlock next = findBlock(p, table, copied, range.end);
  const auto copyNext = [&](int stage) {
    if (copied < range.end) {
      holes[stage] = __ballot_sync(kFullWarp, next.page == 0) & 0xffffu;
      copyBlock<kDim>(p, next, kvHead, stages + stage * kStageBytes);
      copied += kStep;
      next = findBlock(p, table, copied, range.end);  // its latency hides behind the copies
    }
    commitCopies();
  };
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) copyNext(stage);

  for (int base = begin; base < range.end;) {
#pragma unroll
    for (int stage = 0; stage < kStages; ++stage, base += kStep) {
      if (base >= range.end) break;
      waitCopies<kStages - 2>();
      __syncwarp();
      copyNext((stage + kStages - 1) % kStages);
      const unsigned keyTile = stages + stage * kStageBytes;
      float scores[kDecodeKeys / 8][4] = {};
      scoreKeys<kDim, kDecodeKeys>(scores, queryTile, 0, keyTile, 0, p.headDim);
      maskScores<kDecodeKeys>(p, scores, base, first, last, holes[stage], false);
      softmaxStep<kDim, kDecodeKeys>(state, scores);
      addValues<kDim, kDecodeKeys>(state, scores, keyTile + kTileBytes, 0, p.vHeadDim);
      __syncwarp();
    }
  }
}

// Leaves the warp's state in shared memory: outputs [16][kDim] in its stages, (maximum, sum) a row in
// `stats`.
template <int kDim>
__device__ __forceinline__ void publishState(const RowState<kDim>& state, float* outputs, float (*stats)[2]) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int column = 0; column < TileShape<kDim>::kColumns; ++column) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      outputs[(lane / 4 + i / 2 * 8) * kDim + column * 8 + lane % 4 * 2 + i % 2] = state.output[column][i];
    }
  }
  if (lane % 4 != 0) return;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    stats[lane / 4 + row * 8][0] = state.maximum[row];
    stats[lane / 4 + row * 8][1] = state.sum[row];
  }
}

// Joins the warps' states and writes the tile's rows.
template <int kDim, int kStages>
__device__ __forceinline__ void writeDecode(const AttentionParams& p, const float* outputs,
                                            const float (*stats)[kDecodeRows][2],
                                            const SequenceQueries& queries, int tile, int kvHead) {
  constexpr int kWarpFloats = DecodeShape<kDim, kStages>::kWarpBytes / 4;
  const int seq = blockIdx.z, lane = threadIdx.x % kWarpSize;
  for (int row = threadIdx.x / kWarpSize; row < kDecodeRows; row += kDecodeWarps) {
    const int packed = tile * kDecodeRows + row, token = packed / p.group,
              head = kvHead * p.group + packed % p.group;
    if (token >= queries.numTokens) return;
    float maximum = -kInfinity, sum = 0.0f, weights[kDecodeWarps];
#pragma unroll
    for (int warp = 0; warp < kDecodeWarps; ++warp) maximum = fmaxf(maximum, stats[warp][row][0]);
#pragma unroll
    for (int warp = 0; warp < kDecodeWarps; ++warp) {
      weights[warp] = maximum == -kInfinity ? 0.0f : exp2f(stats[warp][row][0] - maximum);
      sum += weights[warp] * stats[warp][row][1];
    }
    const bool isPartial = p.numSplits > 1;
    const long long index = isPartial ? partialIndex(p, blockIdx.x, seq, token, head) : 0;
    const float scale = isPartial ? 1.0f : outputScale(p, head, maximum, sum);
    for (int dim = lane; dim < p.vHeadDim; dim += kWarpSize) {
      float value = 0.0f;
#pragma unroll
      for (int warp = 0; warp < kDecodeWarps; ++warp)
        value += weights[warp] * outputs[warp * kWarpFloats + row * kDim + dim];
      if (isPartial) {
        p.partialOutputs[index * p.vHeadDim + dim] = value;
      } else {
        const long long at = (queries.firstRow + token) * p.outStride + head * p.vHeadDim + dim;
        static_cast<Bf16*>(p.out)[at] = fromFloat<Bf16>(value * scale);
      }
    }
    if (isPartial && lane == 0) {
      p.partialStats[2 * index] = maximum;
      p.partialStats[2 * index + 1] = sum;
    }
  }
}

// Grid (splits, KV heads * tiles of 16 packed rows, sequences). Dynamic shared memory: DecodeShape<kDim,
// kStages>::kSharedBytes.
template <int kDim, int kStages>
__global__ void __launch_bounds__(kDecodeWarps* kWarpSize)
    pagedDecodeKernel(const __grid_constant__ AttentionParams p) {
  extern __shared__ __align__(128) char memory[];
  __shared__ float stats[kDecodeWarps][kDecodeRows][2];
  const int seq = blockIdx.z, kvHead = blockIdx.y % p.numKvHeads, tile = blockIdx.y / p.numKvHeads;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const SequenceQueries queries = queriesOf(p, seq);
  if (tile * kDecodeRows >= queries.numTokens * p.group) return;
  const KeyRange range = rangeOfSplit(p, visibleKeys(p, queries, tile), blockIdx.x);
  if (range.begin == range.end) return;

  const unsigned queryTile = sharedAddress(memory);
  copyQueries<kDim>(p, queryTile, queries, kvHead, tile * kDecodeRows, kDecodeRows, threadIdx.x, blockDim.x);
  commitCopies();
  waitCopies<0>();
  __syncthreads();

  int first[2], last[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    last[row] = queries.firstPosition + (tile * kDecodeRows + lane / 4 + row * 8) / p.group;
    first[row] = firstKeyOf(p, last[row]);
  }
  const int* table = p.pageTable + static_cast<long long>(p.tableRows[seq]) * p.tableWidth;
  RowState<kDim> state;
  char* stages =
      memory + DecodeShape<kDim, kStages>::kQueryBytes + warp * DecodeShape<kDim, kStages>::kWarpBytes;
  decodeKeys<kDim, kStages>(p, state, table, range, kvHead, first, last, queryTile, sharedAddress(stages));
  joinSums(state);
  waitCopies<0>();
  publishState(state, reinterpret_cast<float*>(stages), stats[warp]);
  __syncthreads();
  writeDecode<kDim, kStages>(p,
                             reinterpret_cast<const float*>(memory + DecodeShape<kDim, kStages>::kQueryBytes),
                             stats, queries, tile, kvHead);
}
