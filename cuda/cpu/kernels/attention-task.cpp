// Attention of one task. For each row (query, head):
//   score[j] = q . k[j] * scale, capped; invisible positions and holes are -inf
//   weight[j] = e^(score[j] - max), summed by position mod 16 and the tree; out = (sum over j ascending of weight[j] v[j]) / sum
// The rows of a task share the loads of K and V; a row's results do not depend on its company. Invisible positions and holes are
// left out of the sum over v, never multiplied by zero: what lies there may be anything.
#include "attention-task.h"

#include "../simd/dot-tile.h"
#include "../simd/value-tile.h"

namespace granary::GRANARY_ISA {

namespace {

// A row of the task: its query's place and what it sees.
struct Row {
  int64_t first, last;  // visible positions, inclusive; last < first when there are none
  int head;
  int64_t outRow;
};

struct Rows {
  int count;
  Span span;
  Row row[kMaxTaskRows];
};

Rows rowsOf(const GranaryAttention& args, const AttentionTask& task) {
  Rows rows;
  rows.count = 0;
  rows.span = spanOf(args, task.firstPosition, task.numQueries);
  for (int i = 0; i < task.numQueries; ++i) {
    const int64_t position = task.firstPosition + i;
    for (int h = 0; h < task.numHeads; ++h) {
      rows.row[rows.count++] = {firstVisible(args, position), position, task.firstHead + h, task.firstRow + i};
    }
  }
  return rows;
}

PagedRows pagedRows(const GranaryAttention& args, const AttentionTask& task, bool isKey) {
  const int64_t elementBytes = args.kvDtype == GRANARY_BF16 ? 2 : 4;
  const int64_t elements = isKey ? args.headDim : args.vHeadDim;
  return {
      .head = at<const char>(isKey ? args.kCache : args.vCache) + task.kvHead * elements * elementBytes,
      .pageStrideBytes = isKey ? args.kPageStrideBytes : args.vPageStrideBytes,
      .rowStrideBytes = args.numKvHeads * elements * elementBytes,
      .pages = at<const int32_t>(args.pageTable) +
               static_cast<int64_t>(at<const int32_t>(args.tableRows)[task.sequence]) * args.tableWidth,
      .pageSize = args.pageSize,
      .elements = elements,
      .dtype = args.kvDtype,
  };
}

// Part of a block that lies in [first, last], as half-open indices.
void clip(const KeyBlock& block, int64_t first, int64_t last, int* begin, int* end) {
  int b = 0;
  int e = block.count;
  while (b < e && block.positions[b] < first) ++b;
  while (e > b && block.positions[e - 1] > last) --e;
  *begin = b;
  *end = e;
}

// Scores of up to kTileRows rows with the keys of a block that any of them sees.
template <typename K>
void scoreTile(const GranaryAttention& args, const Rows& rows, int firstRow, int numRows, const KeyBlock& block,
               float* scores) {
  const float* q[kTileRows];
  for (int r = 0; r < numRows; ++r) {
    const Row& row = rows.row[firstRow + r];
    q[r] = at<const float>(args.q) + row.outRow * args.qStride + static_cast<int64_t>(row.head) * args.headDim;
  }
  int begin = 0;
  int end = 0;
  clip(block, rows.row[firstRow].first, rows.row[firstRow + numRows - 1].last, &begin, &end);
  for (int i = begin; i < end; i += kTileColumns) {
    const int numKeys = end - i < kTileColumns ? end - i : kTileColumns;
    const K* k[kTileColumns];
    for (int c = 0; c < numKeys; ++c) k[c] = reinterpret_cast<const K*>(block.rows[i + c]);
    float dots[kTileRows * kTileColumns];
    dotTileOf<float, K>(numRows, numKeys)(q, k, args.headDim, dots);
    for (int r = 0; r < numRows; ++r) {
      float* out = scores + (firstRow + r) * rows.span.length() - rows.span.begin;
      for (int c = 0; c < numKeys; ++c) out[block.positions[i + c]] = dots[r * numKeys + c] * args.scale;
    }
  }
}

void computeScores(const GranaryAttention& args, const AttentionTask& task, const Rows& rows,
                   const AttentionScratch& scratch) {
  const PagedRows keys = pagedRows(args, task, true);
  const Vec16 unseen = broadcast(-__builtin_inff());
  for (int64_t i = 0; i < rows.count * rows.span.length(); i += kLanes) store(scratch.scores + i, unseen);
  // Widening once pays when more than one tile of rows reads the block.
  const bool widens = keys.dtype == GRANARY_BF16 && rows.count > kTileRows;
  const int64_t stride = roundUp(args.headDim, kLanes);
  const int64_t last = rows.row[rows.count - 1].last;
  KeyBlock block;
  for (int64_t begin = rows.row[0].first; begin <= last; begin += kKeyBlock) {
    findRows(keys, begin, begin + kKeyBlock <= last ? begin + kKeyBlock : last + 1, block);
    if (widens) widenRows(keys, block, scratch.block, stride);
    for (int r = 0; r < rows.count; r += kTileRows) {
      const int numRows = rows.count - r < kTileRows ? rows.count - r : kTileRows;
      if (keys.dtype == GRANARY_BF16 && !widens) scoreTile<uint16_t>(args, rows, r, numRows, block, scratch.scores);
      else scoreTile<float>(args, rows, r, numRows, block, scratch.scores);
    }
  }
}

// Turns a row's scores into weights and returns their sum, the sink's share included.
float softmaxRow(const GranaryAttention& args, const Rows& rows, int r, float* scores) {
  const Row& row = rows.row[r];
  const Span& span = rows.span;
  const float unseen = -__builtin_inff();
  // A tile computes scores that only some of its rows may see.
  for (int64_t j = span.begin; j < row.first; ++j) scores[j - span.begin] = unseen;
  for (int64_t j = row.last < span.begin ? span.begin : row.last + 1; j < span.end; ++j) scores[j - span.begin] = unseen;
  if (args.softcap != 0) {
    const Vec16 cap = broadcast(args.softcap);
    mapRow(scores, scores, span.length(), [&](Vec16 s) {
      return selectLess(broadcast(unseen), s, mul(cap, tanh(div(s, cap))), s);
    });
  }
  float largest = maxOf(scores, span.length());
  const float* sinks = at<const float>(args.sinks);
  if (sinks != nullptr && sinks[row.head] > largest) largest = sinks[row.head];
  if (largest == unseen) return 0;
  const float sum = expRow(scores, scores, span.length(), largest);
  return sinks == nullptr ? sum : sum + exp(sinks[row.head] - largest);
}

// Adds a block's values to the sums of up to kValueRows rows: keys that all of them see together, the edges row by row.
void valueBlock(const Rows& rows, int firstRow, int numRows, const KeyBlock& block, const AttentionScratch& scratch,
                int64_t stride) {
  const float* p[kValueRows];
  const float* v[kKeyBlock];
  int32_t offsets[kKeyBlock];
  for (int i = 0; i < block.count; ++i) {
    v[i] = reinterpret_cast<const float*>(block.rows[i]);
    offsets[i] = static_cast<int32_t>(block.positions[i] - rows.span.begin);
  }
  for (int r = 0; r < numRows; ++r) p[r] = scratch.scores + (firstRow + r) * rows.span.length();
  int commonBegin = 0;
  int commonEnd = 0;
  clip(block, rows.row[firstRow + numRows - 1].first, rows.row[firstRow].last, &commonBegin, &commonEnd);
  float* sums = scratch.sums + firstRow * stride;
  const auto one = [&](int r, int begin, int end) {
    if (begin < end) accumulateValues(1, sums + r * stride, stride, p + r, {offsets + begin, v + begin, end - begin});
  };
  for (int r = 0; r < numRows; ++r) {
    int begin = 0;
    int end = 0;
    clip(block, rows.row[firstRow + r].first, rows.row[firstRow + r].last, &begin, &end);
    one(r, begin, end < commonBegin ? end : commonBegin);
  }
  if (commonBegin < commonEnd) {
    accumulateValues(numRows, sums, stride, p, {offsets + commonBegin, v + commonBegin, commonEnd - commonBegin});
  }
  for (int r = 0; r < numRows; ++r) {
    int begin = 0;
    int end = 0;
    clip(block, rows.row[firstRow + r].first, rows.row[firstRow + r].last, &begin, &end);
    one(r, begin > commonEnd ? begin : commonEnd, end);
  }
}

void sumValues(const GranaryAttention& args, const AttentionTask& task, const Rows& rows,
               const AttentionScratch& scratch) {
  const PagedRows values = pagedRows(args, task, false);
  const int64_t stride = roundUp(args.vHeadDim, kLanes);
  for (int64_t i = 0; i < rows.count * stride; i += kLanes) store(scratch.sums + i, zero());
  const bool widens = values.dtype == GRANARY_BF16 || stride != args.vHeadDim;
  const int64_t last = rows.row[rows.count - 1].last;
  KeyBlock block;
  for (int64_t begin = rows.row[0].first; begin <= last; begin += kKeyBlock) {
    findRows(values, begin, begin + kKeyBlock <= last ? begin + kKeyBlock : last + 1, block);
    if (widens) widenRows(values, block, scratch.block, stride);
    for (int r = 0; r < rows.count; r += kValueRows) {
      valueBlock(rows, r, rows.count - r < kValueRows ? rows.count - r : kValueRows, block, scratch, stride);
    }
  }
}

}  // namespace

void runAttentionTask(const GranaryAttention& args, const AttentionTask& task, const AttentionScratch& scratch) {
  const Rows rows = rowsOf(args, task);
  computeScores(args, task, rows, scratch);
  float denominators[kMaxTaskRows];
  for (int r = 0; r < rows.count; ++r) {
    denominators[r] = softmaxRow(args, rows, r, scratch.scores + r * rows.span.length());
  }
  sumValues(args, task, rows, scratch);
  const int64_t stride = roundUp(args.vHeadDim, kLanes);
  for (int r = 0; r < rows.count; ++r) {
    const Row& row = rows.row[r];
    float* out = at<float>(args.out) + row.outRow * args.outStride + static_cast<int64_t>(row.head) * args.vHeadDim;
    const Vec16 denominator = broadcast(denominators[r]);
    if (denominators[r] == 0) memset(out, 0, sizeof(float) * static_cast<size_t>(args.vHeadDim));
    else mapRow(out, scratch.sums + r * stride, args.vHeadDim, [&](Vec16 s) { return div(s, denominator); });
  }
}

}  // namespace granary::GRANARY_ISA
