// Choice of experts.
//   logits f32 [rows, numExperts] -> ids int32, weights f32 [rows, topK], in descending order of the logit
// Ties go to the lower expert id; a NaN counts as -inf. One piece of rows a task.
#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

// Inserts into the list of the best so far; equal logits keep their order, so the lower id stays in front.
void selectExperts(const float* logits, int32_t numExperts, int32_t topK, int32_t* ids, float* best) {
  int32_t count = 0;
  for (int32_t e = 0; e < numExperts; ++e) {
    const float logit = logits[e] == logits[e] ? logits[e] : -__builtin_inff();
    if (count == topK && !(logit > best[topK - 1])) continue;
    int32_t place = count < topK ? count++ : topK - 1;
    for (; place > 0 && logit > best[place - 1]; --place) {
      best[place] = best[place - 1];
      ids[place] = ids[place - 1];
    }
    best[place] = logit;
    ids[place] = e;
  }
}

void routeRow(const GranaryMoeRoute& args, int64_t row) {
  const float* logits = at<const float>(args.logits) + row * args.numExperts;
  int32_t* ids = at<int32_t>(args.ids) + row * args.topK;
  float* weights = at<float>(args.weights) + row * args.topK;
  float best[kMaxTopExperts];
  selectExperts(logits, args.numExperts, args.topK, ids, best);
  // The first of the chosen is the largest of all, so one shift serves both kinds of softmax.
  const float sum = args.routing == GRANARY_TOPK_SOFTMAX ? expRow(weights, best, args.topK, best[0])
                                                         : sumOfExp(logits, args.numExperts, best[0]);
  if (args.routing != GRANARY_TOPK_SOFTMAX) expRow(weights, best, args.topK, best[0]);
  for (int32_t j = 0; j < args.topK; ++j) weights[j] /= sum;
  if (args.routing != GRANARY_SOFTMAX_TOPK_NORM) return;
  const float kept = sumOf(weights, args.topK);
  for (int32_t j = 0; j < args.topK; ++j) weights[j] /= kept;
}

}  // namespace

void moeRoute(const GranaryMoeRoute& args) {
  forEachRange(args.rows, 8 * static_cast<int64_t>(args.numExperts),
               [&](int64_t begin, int64_t end, int32_t) {
                 for (int64_t r = begin; r < end; ++r) routeRow(args, r);
               });
}

}  // namespace granary::GRANARY_ISA
