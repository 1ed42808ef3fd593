// granary_moe_route, granary_moe_experts and its scratch.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

namespace {

void checkChoice(Check& check, int32_t rows, int32_t numExperts, int32_t topK) {
  check.atLeast("rows", rows, 0);
  check.atLeast("numExperts", numExperts, 1);
  check.atLeast("topK", topK, 1);
  check.atMost("topK", topK, numExperts);
  check.atMost("topK", topK, kMaxTopExperts);
}

void checkExpertShape(Check& check, const GranaryMoeExperts& args) {
  checkChoice(check, args.rows, args.numExperts, args.topK);
  check.atLeast("hidden", args.hidden, 1);
  check.atLeast("inner", args.inner, 1);
  check.activation("dtype", args.dtype);
  check.storage("weightDtype", args.weightDtype);
  check.that(args.activation == GRANARY_SILU || args.activation == GRANARY_GELU_TANH, "activation",
             "is unknown");
}

}  // namespace

GRANARY_EXPORT int32_t granary_moe_route(const GranaryMoeRoute* args) {
  Check check("moe_route", args);
  if (check.failed()) return check.status();
  checkChoice(check, args->rows, args->numExperts, args->topK);
  check.that(args->routing >= GRANARY_SOFTMAX_TOPK && args->routing <= GRANARY_TOPK_SOFTMAX, "routing",
             "is unknown");
  check.present("logits", args->logits);
  check.present("ids", args->ids);
  check.present("weights", args->weights);
  if (check.failed()) return check.status();
  kernels().moeRoute(*args);
  return GRANARY_OK;
}

GRANARY_EXPORT int64_t granary_moe_scratch_bytes(const GranaryMoeExperts* args) {
  Check check("moe_scratch_bytes", args);
  if (check.failed()) return -check.status();
  checkExpertShape(check, *args);
  return check.failed() ? -check.status() : kernels().moeScratchBytes(*args);
}

GRANARY_EXPORT int32_t granary_moe_experts(const GranaryMoeExperts* args) {
  Check check("moe_experts", args);
  if (check.failed()) return check.status();
  checkExpertShape(check, *args);
  check.present("x", args->x);
  check.present("gateUp", args->gateUp);
  check.present("down", args->down);
  check.present("ids", args->ids);
  check.present("weights", args->weights);
  check.present("out", args->out);
  check.present("scratch", args->scratch);
  check.atLeast("xStride", args->xStride, args->hidden);
  check.atLeast("outStride", args->outStride, args->hidden);
  if (args->residual != 0) check.atLeast("residualStride", args->residualStride, args->hidden);
  if (!check.failed() && verifies()) {
    check.inRange("ids", args->ids, static_cast<int64_t>(args->rows) * args->topK, 0, args->numExperts);
  }
  if (check.failed()) return check.status();
  kernels().moeExperts(*args);
  return GRANARY_OK;
}
