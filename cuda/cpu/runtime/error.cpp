// The text of the calling thread's last failure.
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

#include "export.h"

namespace granary {

namespace {
constexpr int kMaxTextBytes = 512;
thread_local char lastError[kMaxTextBytes] = "";
}  // namespace

int32_t fail(int32_t status, const char* op, const char* format, ...) {
  const int prefix = snprintf(lastError, kMaxTextBytes, "%s: ", op);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(lastError + prefix, static_cast<size_t>(kMaxTextBytes - prefix), format, arguments);
  va_end(arguments);
  return status;
}

}  // namespace granary

GRANARY_EXPORT const char* granary_last_error(void) { return granary::lastError; }
