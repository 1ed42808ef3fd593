// One task of attention: some neighbouring queries of a sequence times some query heads of one KV head.
#pragma once
#include "attention-keys.h"

namespace granary::GRANARY_ISA {

// Rows (query, head) of a task: enough to pay for a pass over K and V, few enough for their sums to stay in L2.
constexpr int kMaxTaskRows = 64;

struct AttentionTask {
  int64_t sequence;
  int64_t firstRow;       // row of q and out of the first query
  int64_t firstPosition;  // of the first query
  int numQueries;
  int kvHead;
  int firstHead;  // query heads [firstHead, firstHead + numHeads), all of kvHead
  int numHeads;
};

// Scratch of one thread.
struct AttentionScratch {
  float* scores;  // [rows, span]
  float* block;   // widened rows of K or V, [kKeyBlock, padded head dimension]
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
};

GRANARY_INLINE Span spanOf(const GranaryAttention& args, int64_t firstPosition, int64_t numQueries) {
  const int64_t first = firstVisible(args, firstPosition) / kLanes * kLanes;
  const int64_t end = firstPosition + numQueries;
  return {first, end <= first ? first : first + roundUp(end - first, kLanes)};
}

void runAttentionTask(const GranaryAttention& args, const AttentionTask& task, const AttentionScratch& scratch);

}  // namespace granary::GRANARY_ISA
