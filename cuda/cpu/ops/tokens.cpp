// The ops on token ids and small tables: granary_resolve_tokens, granary_count_tokens, granary_scatter.
#include <string.h>

#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

namespace {

template <typename T>
T* at(granary_address address) {
  return reinterpret_cast<T*>(address);
}

constexpr uint32_t kInPrompt = 0x80000000u;

}  // namespace

GRANARY_EXPORT int32_t granary_resolve_tokens(const GranaryResolveTokens* args) {
  Check check("resolve_tokens", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("numSlots", args->numSlots, 0);
  check.present("ids", args->ids);
  check.present("lastTokens", args->lastTokens);
  if (verifies())
    check.inRange("ids", args->ids, args->rows, -static_cast<int64_t>(args->numSlots), INT64_MAX);
  if (check.failed()) return check.status();
  int32_t* ids = at<int32_t>(args->ids);
  for (int32_t r = 0; r < args->rows; ++r) {
    if (ids[r] < 0) ids[r] = at<const int32_t>(args->lastTokens)[-(ids[r] + 1)];
  }
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_count_tokens(const GranaryCountTokens* args) {
  Check check("count_tokens", args);
  if (check.failed()) return check.status();
  check.atLeast("slot", args->slot, 0);
  check.atLeast("vocab", args->vocab, 1);
  check.atLeast("numIds", args->numIds, 0);
  check.atLeast("numPrompt", args->numPrompt, 0);
  check.atMost("numPrompt", args->numPrompt, args->numIds);
  check.present("counts", args->counts);
  if (args->numIds > 0) check.present("ids", args->ids);
  if (verifies()) check.inRange("ids", args->ids, args->numIds, 0, args->vocab);
  if (check.failed()) return check.status();
  uint32_t* counts = at<uint32_t>(args->counts) + static_cast<int64_t>(args->slot) * args->vocab;
  if (args->clear != 0) memset(counts, 0, sizeof(uint32_t) * static_cast<size_t>(args->vocab));
  const int32_t* ids = at<const int32_t>(args->ids);
  for (int32_t i = 0; i < args->numIds; ++i) {
    if (ids[i] < 0 || ids[i] >= args->vocab) continue;
    if (i < args->numPrompt) counts[ids[i]] |= kInPrompt;
    else ++counts[ids[i]];
  }
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_scatter(const GranaryScatter* args) {
  Check check("scatter", args);
  if (check.failed()) return check.status();
  check.atLeast("count", args->count, 0);
  check.present("table", args->table);
  check.present("indices", args->indices);
  check.present("values", args->values);
  if (verifies()) check.inRange("indices", args->indices, args->count, 0, INT64_MAX);
  if (check.failed()) return check.status();
  for (int32_t i = 0; i < args->count; ++i) {
    at<int32_t>(args->table)[at<const int32_t>(args->indices)[i]] = at<const int32_t>(args->values)[i];
  }
  return GRANARY_OK;
}
