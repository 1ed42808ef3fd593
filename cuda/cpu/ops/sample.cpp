// granary_sample and its scratch.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

namespace {

void checkShape(Check& check, const GranarySample& args) {
  check.atLeast("rows", args.rows, 0);
  check.atLeast("vocab", args.vocab, 1);
  check.atLeast("numSlots", args.numSlots, 1);
  check.atLeast("biasCapacity", args.biasCapacity, 0);
  check.atLeast("suppressedCapacity", args.suppressedCapacity, 0);
}

}  // namespace

GRANARY_EXPORT int64_t granary_sample_scratch_bytes(const GranarySample* args) {
  Check check("sample_scratch_bytes", args);
  if (check.failed()) return -check.status();
  checkShape(check, *args);
  return check.failed() ? -check.status() : kernels().sampleScratchBytes(*args);
}

GRANARY_EXPORT int32_t granary_sample(const GranarySample* args) {
  Check check("sample", args);
  if (check.failed()) return check.status();
  checkShape(check, *args);
  check.present("logits", args->logits);
  check.present("slots", args->slots);
  check.present("positions", args->positions);
  check.present("params", args->params);
  check.present("out", args->out);
  check.present("scratch", args->scratch);
  check.atLeast("logitsStride", args->logitsStride, args->vocab);
  if (args->biasCapacity > 0) {
    check.present("biasIds", args->biasIds);
    check.present("biasValues", args->biasValues);
  }
  if (args->suppressedCapacity > 0) check.present("suppressedIds", args->suppressedIds);
  if (!check.failed() && verifies())
    check.inRange("slots", args->slots, args->rows, INT32_MIN, args->numSlots);
  if (check.failed()) return check.status();
  kernels().sample(*args);
  return GRANARY_OK;
}
