// Launcher of the penalty counts.
#include "count-tokens.cuh"

#include "runtime.h"

using namespace granary;

extern "C" int32_t granary_count_tokens(const GranaryCountTokens* args) {
  const GranaryCountTokens& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.slot >= 0 && a.vocab > 0, "count_tokens: slot %d, vocabulary of %d", a.slot, a.vocab);
  GRANARY_REQUIRE(a.numIds >= 0 && a.numPrompt >= 0 && a.numPrompt <= a.numIds, "count_tokens: %d of %d ids",
                  a.numPrompt, a.numIds);
  unsigned* row = pointer<unsigned>(a.counts) + static_cast<int64_t>(a.slot) * a.vocab;
  if (a.clear != 0) {
    GRANARY_TRY(check(cudaMemsetAsync(row, 0, sizeof(unsigned) * a.vocab, runtime.stream), "count_tokens"));
  }
  if (a.numIds == 0) return GRANARY_OK;
  GRANARY_TRY(checkIds("count_tokens ids", a.ids, a.numIds, 0, a.vocab));
  const CountTokensParams params{row, pointer<int>(a.ids), a.vocab, a.numIds, a.numPrompt};
  return launch<countTokensKernel>("count_tokens", dim3(ceilDivide(a.numIds, kCountThreads)), kCountThreads,
                                   0, params);
}
