// Launcher of the token embedding.
#include "embedding.cuh"

#include <climits>

#include "runtime.h"

using namespace granary;

extern "C" int32_t granary_embedding(const GranaryEmbedding* args) {
  const GranaryEmbedding& a = *args;
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(a.rows >= 0 && a.columns > 0 && a.vocab > 0, "embedding: %d rows of %d columns", a.rows,
                  a.columns);
  GRANARY_REQUIRE(isFloat(a.dtype) && isFloat(a.tableDtype), "embedding: dtypes %d, %d", a.dtype,
                  a.tableDtype);
  if (a.rows == 0) return GRANARY_OK;
  GRANARY_TRY(checkIds("embedding ids", a.ids, a.rows, INT_MIN, a.vocab));
  const bool wide = isWide(a.table, a.columns, a.columns) && isWide(a.out, a.columns, a.columns);
  return withFloat(a.dtype, [&](auto element) {
    return withFloat(a.tableDtype, [&](auto tableElement) {
      using T = decltype(element);
      using TTable = decltype(tableElement);
      const EmbeddingParams<T, TTable> params{
          pointer<TTable>(a.table), pointer<int>(a.ids), pointer<T>(a.out), a.columns, a.vocab, a.scale};
      constexpr auto kWide = embeddingKernel<T, TTable, 8>;
      constexpr auto kNarrow = embeddingKernel<T, TTable, 1>;
      return wide ? launchEarly<kWide>("embedding", dim3(a.rows), kEmbeddingThreads, 0, params)
                  : launchEarly<kNarrow>("embedding", dim3(a.rows), kEmbeddingThreads, 0, params);
    });
  });
}
