// One task of attention: some neighbouring queries of a sequence times some query heads.
#pragma once
#include "kernel.h"

namespace granary::GRANARY_ISA {

// Rows (query, head) of a task: enough to pay for a pass over K and V, few enough for their sums to stay in
// L2.
constexpr int kMaxTaskRows = 64;

struct AttentionTask {
  int64_t sequence;
  int64_t firstRow;       // row of q and out of the first query
  int64_t firstPosition;  // of the first query
  int numQueries;
  int firstHead;  // query heads: part of one group, or whole groups
  int numHeads;
};

// Scratch of one thread.
struct AttentionScratch {
  float* scores;  // [rows, span]
  float* block;   // copied rows of K or V, [kKeyBlock, padded head dimension]
  float* sums;    // [rows, padded vHeadDim]
};

// First position that a query sees.
GRANARY_INLINE int64_t firstVisible(const GranaryAttention& args, int64_t position) {
  return args.windowLeft < 0 || position < args.windowLeft ? 0 : position - args.windowLeft;
}

// Positions whose scores a task keeps, from a multiple of sixteen on, in whole vectors.
struct Span {
  int64_t begin, end;
  int64_t length() const { return end - begin; }
  // Floats between the scores of two rows: an odd number of lines, or the rows of long contexts would meet in
  // one set of L1.
  int64_t stride() const { return length() / kLanes % 2 == 0 ? length() + kLanes : length(); }
};

GRANARY_INLINE Span spanOf(const GranaryAttention& args, int64_t firstPosition, int64_t numQueries) {
  const int64_t first = firstVisible(args, firstPosition) / kLanes * kLanes;
  const int64_t end = firstPosition + numQueries;
  return {first, end <= first ? first : first + roundUp(end - first, kLanes)};
}

// A row of the task: its query's place and what it sees.
struct AttentionRow {
  int64_t first, last;  // visible positions, inclusive; last < first when there are none
  int head;
  int64_t outRow;
};

// The rows of a task by KV head, in it by query, in it by query head; so their first and last positions
// ascend in a KV head.
struct AttentionRows {
  int count;
  int rowsAKvHead;
  int firstKvHead;
  Span span;
  AttentionRow row[kMaxTaskRows];

  int numKvHeads() const { return count / rowsAKvHead; }
  int64_t firstPosition() const { return row[0].first; }
  int64_t lastPosition() const { return row[count - 1].last; }
};

void runAttentionTask(const GranaryAttention& args, const AttentionTask& task,
                      const AttentionScratch& scratch);

// Parts of a task: the scores of its rows, q . k * scale, -inf where a row sees nothing; the sums of values
// by weight.
void computeScores(const GranaryAttention& args, const AttentionTask& task, const AttentionRows& rows,
                   const AttentionScratch& scratch);
void sumValues(const GranaryAttention& args, const AttentionTask& task, const AttentionRows& rows,
               const AttentionScratch& scratch);

}  // namespace granary::GRANARY_ISA
