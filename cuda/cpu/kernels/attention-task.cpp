// Attention of one task. For each row (query, head):
//   score[j] = q . k[j] * scale, capped; invisible positions and holes are -inf
//   weight[j] = e^(score[j] - max), summed by position mod 16 and the tree; out = (sum over j ascending of
//   weight[j] v[j]) / sum
// The rows of a task share the loads of K and V; a row's results do not depend on its company.
#include "attention-task.h"

namespace granary::GRANARY_ISA {

namespace {

AttentionRows rowsOf(const GranaryAttention& args, const AttentionTask& task) {
  const int group = args.numQHeads / args.numKvHeads;
  const int headsAKvHead = task.numHeads < group ? task.numHeads : group;
  AttentionRows rows;
  rows.count = 0;
  rows.rowsAKvHead = task.numQueries * headsAKvHead;
  rows.firstKvHead = task.firstHead / group;
  rows.span = spanOf(args, task.firstPosition, task.numQueries);
  for (int head = task.firstHead; head < task.firstHead + task.numHeads; head += headsAKvHead) {
    for (int i = 0; i < task.numQueries; ++i) {
      const int64_t position = task.firstPosition + i;
      for (int h = head; h < head + headsAKvHead; ++h) {
        rows.row[rows.count++] = {firstVisible(args, position), position, h, task.firstRow + i};
      }
    }
  }
  return rows;
}

// Turns a row's scores into weights and returns their sum, the sink's share included.
float softmaxRow(const GranaryAttention& args, const AttentionRow& row, const Span& span, float* scores) {
  const float unseen = -__builtin_inff();
  // A tile computes scores that only some of its rows may see.
  for (int64_t j = span.begin; j < row.first; ++j) scores[j - span.begin] = unseen;
  for (int64_t j = row.last < span.begin ? span.begin : row.last + 1; j < span.end; ++j)
    scores[j - span.begin] = unseen;
  if (args.softcap != 0) {
    const Vec16 cap = broadcast(args.softcap);
    mapRow(scores, scores, span.length(),
           [&](Vec16 s) { return selectLess(broadcast(unseen), s, mul(cap, tanh(div(s, cap))), s); });
  }
  float largest = maxOf(scores, span.length());
  const float* sinks = at<const float>(args.sinks);
  if (sinks != nullptr && sinks[row.head] > largest) largest = sinks[row.head];
  if (largest == unseen) return 0;
  const float sum = expRow(scores, scores, span.length(), largest);
  return sinks == nullptr ? sum : sum + exp(sinks[row.head] - largest);
}

// A row that sees nothing is zero.
void writeRow(const GranaryAttention& args, const AttentionRow& row, const float* sums, float denominator) {
  float* out =
      at<float>(args.out) + row.outRow * args.outStride + static_cast<int64_t>(row.head) * args.vHeadDim;
  const Vec16 divisor = broadcast(denominator);
  if (denominator == 0) memset(out, 0, sizeof(float) * static_cast<size_t>(args.vHeadDim));
  else mapRow(out, sums, args.vHeadDim, [&](Vec16 s) { return div(s, divisor); });
}

}  // namespace

void runAttentionTask(const GranaryAttention& args, const AttentionTask& task,
                      const AttentionScratch& scratch) {
  const AttentionRows rows = rowsOf(args, task);
  computeScores(args, task, rows, scratch);
  float denominators[kMaxTaskRows];
  for (int r = 0; r < rows.count; ++r) {
    denominators[r] = softmaxRow(args, rows.row[r], rows.span, scratch.scores + r * rows.span.stride());
  }
  sumValues(args, task, rows, scratch);
  const int64_t stride = roundUp(args.vHeadDim, kLanes);
  for (int r = 0; r < rows.count; ++r)
    writeRow(args, rows.row[r], scratch.sums + r * stride, denominators[r]);
}

}  // namespace granary::GRANARY_ISA
