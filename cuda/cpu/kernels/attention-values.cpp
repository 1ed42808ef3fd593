// Sums of values of a task: sums[r] += weight[r][j] * v[j] over the visible keys j in ascending order, by
// fma.
//   sums f32 [rows, padded vHeadDim]
// Keys that a row does not see and holes are left out, never multiplied by zero: what lies there may be
// anything. A tile takes kValueRows rows of one KV head; the keys that all of them see go together, the edges
// row by row.
#include "../simd/value-tile.h"
#include "attention-keys.h"

namespace granary::GRANARY_ISA {

namespace {

// A block of values as the tiles take it, and the head parts of the next block beside it.
class ValueBlock {
 public:
  ValueBlock(const KeyBlock& block, const KeyBlock& next, int64_t nextElementBytes, int64_t spanBegin)
      : block(block), nextElementBytes_(nextElementBytes) {
    for (int i = 0; i < block.count; ++i) {
      v_[i] = reinterpret_cast<const float*>(block.rows[i]);
      offsets_[i] = static_cast<int32_t>(block.positions[i] - spanBegin);
      ahead_[i] = i < next.count ? next.rows[i] : block.rows[i];
    }
  }

  ValueKeys keys(int begin, int end, bool asksAhead) const {
    return {offsets_ + begin, v_ + begin, asksAhead ? ahead_ + begin : nullptr, nextElementBytes_,
            end - begin};
  }

  const KeyBlock& block;

 private:
  int64_t nextElementBytes_;
  int32_t offsets_[kKeyBlock];
  const float* v_[kKeyBlock];
  const char* ahead_[kKeyBlock];
};

// Adds a block's values to the sums of rows [firstRow, firstRow + numRows).
void addValues(const AttentionRows& rows, int firstRow, int numRows, const ValueBlock& values, bool asksAhead,
               const AttentionScratch& scratch, int64_t stride) {
  const float* p[kValueRows];
  for (int r = 0; r < numRows; ++r) p[r] = scratch.scores + (firstRow + r) * rows.span.stride();
  float* sums = scratch.sums + firstRow * stride;
  int commonBegin = 0;
  int commonEnd = 0;
  clip(values.block, rows.row[firstRow + numRows - 1].first, rows.row[firstRow].last, &commonBegin,
       &commonEnd);
  const auto addEdge = [&](int r, bool isFront) {
    int begin = 0;
    int end = 0;
    clip(values.block, rows.row[firstRow + r].first, rows.row[firstRow + r].last, &begin, &end);
    if (isFront && end > commonBegin) end = commonBegin;
    if (!isFront && begin < commonEnd) begin = commonEnd;
    if (begin < end) accumulateValues(1, sums + r * stride, stride, p + r, values.keys(begin, end, false));
  };
  for (int r = 0; r < numRows; ++r) addEdge(r, true);
  if (commonBegin < commonEnd) {
    accumulateValues(numRows, sums, stride, p, values.keys(commonBegin, commonEnd, asksAhead));
  }
  for (int r = 0; r < numRows; ++r) addEdge(r, false);
}

}  // namespace

void sumValues(const GranaryAttention& args, const AttentionTask& task, const AttentionRows& rows,
               const AttentionScratch& scratch) {
  const PagedRows cache = pagedRows(args, task, false);
  const int64_t stride = roundUp(args.vHeadDim, kLanes);
  for (int64_t i = 0; i < rows.count * stride; i += kLanes) store(scratch.sums + i, zero());
  const bool copies = cache.dtype == GRANARY_BF16 || stride != args.vHeadDim || rows.rowsAKvHead > kValueRows;
  forEachBlock(cache, rows.firstPosition(), rows.lastPosition(),
               [&](const KeyBlock& block, const KeyBlock& next) {
                 for (int h = 0; h < rows.numKvHeads(); ++h) {
                   KeyBlock own;
                   KeyBlock ownNext;
                   selectHead(cache, block, rows.firstKvHead + h, own);
                   selectHead(cache, next, rows.firstKvHead + h, ownNext);
                   if (copies) copyRows(cache, own, scratch.block, stride);
                   const ValueBlock values(own, ownNext, cache.elementBytes(), rows.span.begin);
                   const int begin = h * rows.rowsAKvHead;
                   const int end = begin + rows.rowsAKvHead;
                   for (int r = begin; r < end; r += kValueRows) {
                     addValues(rows, r, end - r < kValueRows ? end - r : kValueRows, values, r == begin,
                               scratch, stride);
                   }
                 }
               });
}

}  // namespace granary::GRANARY_ISA
