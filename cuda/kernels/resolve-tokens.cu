// Launcher of the token resolution.
#include "resolve-tokens.cuh"

#include <climits>

#include "runtime.h"

using namespace granary;

extern "C" int32_t granary_resolve_tokens(const GranaryResolveTokens* args) {
  const GranaryResolveTokens& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.numSlots > 0, "resolve_tokens: %d rows, %d slots", a.rows, a.numSlots);
  if (a.rows == 0) return GRANARY_OK;
  GRANARY_TRY(checkIds("resolve_tokens ids", a.ids, a.rows, -a.numSlots, INT_MAX));
  const ResolveTokensParams params{pointer<int>(a.ids), pointer<int>(a.lastTokens), a.rows, a.numSlots};
  return launchEarly<resolveTokensKernel>("resolve_tokens", dim3(ceilDivide(a.rows, kResolveThreads)),
                                     kResolveThreads, 0, params);
}
