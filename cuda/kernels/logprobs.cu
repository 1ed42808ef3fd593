// Launchers of log-softmax and of the best log-probabilities.
#include "log-softmax.cuh"
#include "runtime.h"
#include "top-logprobs.cuh"

using namespace granary;

extern "C" {

int32_t granary_log_softmax(const GranaryLogSoftmax* args) {
  const GranaryLogSoftmax& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.columns > 0, "log_softmax: %d rows of %d columns", a.rows, a.columns);
  if (a.rows == 0) return GRANARY_OK;
  const LogSoftmaxParams params{pointer<float>(a.logits), pointer<float>(a.out), a.logitsStride, a.outStride,
                                a.columns};
  return launch<logSoftmaxKernel>("log_softmax", dim3(a.rows), kLogSoftmaxThreads, 0, params);
}

int32_t granary_top_logprobs(const GranaryTopLogprobs* args) {
  const GranaryTopLogprobs& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.columns > 0 && a.k >= 0 && a.k <= a.columns,
                  "top_logprobs: %d of %d rows of %d", a.k, a.rows, a.columns);
  GRANARY_REQUIRE(a.k == 0 || (a.ids != 0 && a.values != 0), "top_logprobs: nowhere to write the %d best",
                  a.k);
  GRANARY_REQUIRE(a.chosen == 0 || (a.chosenValues != 0 && a.chosenRanks != 0),
                  "top_logprobs: nowhere to write the chosen tokens");
  if (a.rows == 0) return GRANARY_OK;
  const TopLogprobsParams params{pointer<float>(a.logprobs),
                                 pointer<int>(a.chosen),
                                 pointer<int>(a.ids),
                                 pointer<float>(a.values),
                                 pointer<float>(a.chosenValues),
                                 pointer<int>(a.chosenRanks),
                                 a.logprobsStride,
                                 a.columns,
                                 a.k};
  return launch<topLogprobsKernel>("top_logprobs", dim3(a.rows), kTopLogprobsThreads, 0, params);
}

}  // extern "C"
