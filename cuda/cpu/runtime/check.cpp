// The checks that walk an array; only the verifying mode pays for them.
#include "check.h"

namespace granary {

void Check::inRange(const char* name, granary_address array, int64_t count, int64_t low, int64_t high) {
  if (failed()) return;
  const int32_t* values = reinterpret_cast<const int32_t*>(array);
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] >= low && values[i] < high) continue;
    status_ =
        fail(GRANARY_INVALID, op_, "%s[%lld] is %d, outside [%lld, %lld)", name, static_cast<long long>(i),
             values[i], static_cast<long long>(low), static_cast<long long>(high));
    return;
  }
}

}  // namespace granary
