// Scores of a task: q . k * scale for every row and every key that one of its tile's rows sees.
//   scores f32 [rows, span], -inf for holes and for keys outside what the tile sees
// A tile is kTileRows rows of one KV head times kTileColumns keys. K is read once for all of them.
#include "../simd/dot-tile.h"
#include "attention-keys.h"

namespace granary::GRANARY_ISA {

namespace {

// Where the sums of a tile go.
struct ScoreTile {
  float* const* scores;  // of position 0, a row each
  const int32_t* positions;
  int numKeys;
  bool isContiguous;  // positions follow one another
  float scale;

  GRANARY_INLINE_MEMBER void operator()(int r, __m256 sums) const {
    const __m256 scaled = _mm256_mul_ps(sums, _mm256_set1_ps(scale));
    if (isContiguous) {
      _mm256_maskstore_ps(scores[r] + positions[0], firstLanes(numKeys), scaled);
      return;
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, scaled);
    for (int c = 0; c < numKeys; ++c) scores[r][positions[c]] = lanes[c];
  }
};

// Up to kTileRows neighbouring rows of one KV head and their place in q and in the scores.
struct RowTile {
  int count;
  int64_t first, last;  // positions that one of them sees
  const float* q[kTileRows];
  float* scores[kTileRows];  // of position 0
};

RowTile rowTileOf(const GranaryAttention& args, const AttentionRows& rows, int firstRow, int endRow,
                  float* scores) {
  RowTile tile;
  tile.count = endRow - firstRow < kTileRows ? endRow - firstRow : kTileRows;
  tile.first = rows.row[firstRow].first;
  tile.last = rows.row[firstRow + tile.count - 1].last;
  for (int r = 0; r < tile.count; ++r) {
    const AttentionRow& row = rows.row[firstRow + r];
    tile.q[r] =
        at<const float>(args.q) + row.outRow * args.qStride + static_cast<int64_t>(row.head) * args.headDim;
    tile.scores[r] = scores + (firstRow + r) * rows.span.stride() - rows.span.begin;
  }
  return tile;
}

// To L2: the rows of one head are a power of two apart and would throw one another out of L1.
void askFor(const char* row, int64_t bytes) {
  for (int64_t b = 0; b < bytes; b += 64) _mm_prefetch(row + b, _MM_HINT_T1);
}

// Scores of a tile with the keys of a block. The head parts of `next` are asked for on the way.
template <typename K>
void scoreBlock(const GranaryAttention& args, const RowTile& tile, const KeyBlock& block,
                const KeyBlock& next, int64_t headBytes) {
  int begin = 0;
  int end = 0;
  clip(block, tile.first, tile.last, &begin, &end);
  for (int i = begin; i < end; i += kTileColumns) {
    for (int c = i; c < i + kTileColumns && c < next.count; ++c) askFor(next.rows[c], headBytes);
    const int numKeys = end - i < kTileColumns ? end - i : kTileColumns;
    const K* k[kTileColumns];
    for (int c = 0; c < numKeys; ++c) k[c] = reinterpret_cast<const K*>(block.rows[i + c]);
    const int32_t* positions = block.positions + i;
    const bool isContiguous = positions[numKeys - 1] - positions[0] == numKeys - 1;
    const ScoreTile scores = {tile.scores, positions, numKeys, isContiguous, args.scale};
    dotTileOf<float, K, ScoreTile>(tile.count, numKeys)(tile.q, k, args.headDim, scores);
  }
}

}  // namespace

void computeScores(const GranaryAttention& args, const AttentionTask& task, const AttentionRows& rows,
                   const AttentionScratch& scratch) {
  const PagedRows keys = pagedRows(args, task, true);
  const Vec16 unseen = broadcast(-__builtin_inff());
  for (int64_t i = 0; i < rows.count * rows.span.stride(); i += kLanes) store(scratch.scores + i, unseen);
  // Copying the block pays when more than one tile of rows reads it: it is widened once, and lies together,
  // where the heads of other keys between its rows would make them meet in the same sets of L1.
  const bool copies = rows.rowsAKvHead > kTileRows;
  const bool readsBf16 = keys.dtype == GRANARY_BF16 && !copies;
  KeyBlock nothing;
  nothing.count = 0;
  forEachBlock(keys, rows.firstPosition(), rows.lastPosition(),
               [&](const KeyBlock& block, const KeyBlock& next) {
                 for (int h = 0; h < rows.numKvHeads(); ++h) {
                   KeyBlock own;
                   KeyBlock ownNext;
                   selectHead(keys, block, rows.firstKvHead + h, own);
                   selectHead(keys, next, rows.firstKvHead + h, ownNext);
                   if (copies) copyRows(keys, own, scratch.block, roundUp(args.headDim, kLanes));
                   const int begin = h * rows.rowsAKvHead;
                   const int end = begin + rows.rowsAKvHead;
                   for (int r = begin; r < end; r += kTileRows) {
                     const RowTile tile = rowTileOf(args, rows, r, end, scratch.scores);
                     const KeyBlock& ahead = r == begin ? ownNext : nothing;
                     if (readsBf16) scoreBlock<uint16_t>(args, tile, own, ahead, keys.headBytes());
                     else scoreBlock<float>(args, tile, own, ahead, keys.headBytes());
                   }
                 }
               });
}

}  // namespace granary::GRANARY_ISA
