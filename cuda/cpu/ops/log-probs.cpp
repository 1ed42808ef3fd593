// granary_log_softmax and granary_top_logprobs.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

GRANARY_EXPORT int32_t granary_log_softmax(const GranaryLogSoftmax* args) {
  Check check("log_softmax", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("columns", args->columns, 1);
  check.present("logits", args->logits);
  check.present("out", args->out);
  check.atLeast("logitsStride", args->logitsStride, args->columns);
  check.atLeast("outStride", args->outStride, args->columns);
  if (check.failed()) return check.status();
  kernels().logSoftmax(*args);
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_top_logprobs(const GranaryTopLogprobs* args) {
  Check check("top_logprobs", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("columns", args->columns, 1);
  check.atLeast("k", args->k, 0);
  check.atMost("k", args->k, args->columns);
  check.atMost("k", args->k, kMaxTopLogprobs);
  check.present("logprobs", args->logprobs);
  check.atLeast("logprobsStride", args->logprobsStride, args->columns);
  if (args->k > 0) {
    check.present("ids", args->ids);
    check.present("values", args->values);
  }
  if (args->chosen != 0 && verifies())
    check.inRange("chosen", args->chosen, args->rows, INT32_MIN, args->columns);
  if (check.failed()) return check.status();
  kernels().topLogprobs(*args);
  return GRANARY_OK;
}
