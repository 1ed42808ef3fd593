// The k best log-probabilities of a row, and value and rank of the chosen token.
//   logprobs f32 [rows, columns] -> ids int32, values f32 [rows, k]; chosenValues f32, chosenRanks int32
//   [rows]
// A piece of rows a task. Bound: one read of the row.
#include "../simd/select.h"
#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

void bestOf(const GranaryTopLogprobs& args, int64_t row, const float* logprobs) {
  Ranked buffer[2 * kMaxTopLogprobs + kLanes];
  selectLargest(logprobs, args.columns, args.k, buffer);
  for (int64_t j = 0; j < args.k; ++j) {
    const int32_t id = buffer[j].id();
    at<int32_t>(args.ids)[row * args.k + j] = id;
    at<float>(args.values)[row * args.k + j] = logprobs[id];
  }
}

int32_t rankOf(const float* logprobs, int64_t columns, float value) {
  const Vec16 bound = broadcast(value);
  int64_t greater = 0;
  int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes)
    greater += __builtin_popcount(greaterMask(load(logprobs + i), bound));
  for (; i < columns; ++i) greater += logprobs[i] > value;
  return static_cast<int32_t>(greater + 1);
}

}  // namespace

void topLogprobs(const GranaryTopLogprobs& args) {
  forEachRange(args.rows, 4 * static_cast<int64_t>(args.columns), [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      const float* logprobs = at<const float>(args.logprobs) + r * args.logprobsStride;
      if (args.k > 0) bestOf(args, r, logprobs);
      const int32_t chosen = args.chosen == 0 ? -1 : at<const int32_t>(args.chosen)[r];
      if (chosen < 0) continue;
      if (args.chosenValues != 0) at<float>(args.chosenValues)[r] = logprobs[chosen];
      if (args.chosenRanks != 0) {
        at<int32_t>(args.chosenRanks)[r] = rankOf(logprobs, args.columns, logprobs[chosen]);
      }
    }
  });
}

}  // namespace granary::GRANARY_ISA
