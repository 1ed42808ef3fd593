// Argument checks of one call: each op states its rules up front; the first broken one is kept as text, and
// nothing runs.
#pragma once
#include "error.h"
#include "library.h"

namespace granary {

class Check {
 public:
  // Fails at once when the library is not initialised or the block is absent.
  Check(const char* op, const void* args) : op_(op) {
    if (!isInitialised()) set(GRANARY_INVALID, "granary_init has not been called");
    else if (args == nullptr) set(GRANARY_INVALID, "the argument block is null");
  }

  bool failed() const { return status_ != GRANARY_OK; }
  int32_t status() const { return status_; }
  const char* op() const { return op_; }

  // Fails because this library does not do that.
  int32_t refuse(GranaryStatus status, const char* text) {
    if (!failed()) set(status, text);
    return status_;
  }

  // Requires a condition about the argument called `name`.
  void that(bool condition, const char* name, const char* rule) {
    if (failed() || condition) return;
    status_ = fail(GRANARY_INVALID, op_, "%s %s", name, rule);
  }
  void present(const char* name, granary_address address) { that(address != 0, name, "is absent"); }
  void atLeast(const char* name, int64_t value, int64_t bound) {
    if (failed() || value >= bound) return;
    status_ = fail(GRANARY_INVALID, op_, "%s is %lld, at least %lld is needed", name,
                   static_cast<long long>(value), static_cast<long long>(bound));
  }
  void atMost(const char* name, int64_t value, int64_t bound) {
    if (failed() || value <= bound) return;
    status_ = fail(GRANARY_INVALID, op_, "%s is %lld, at most %lld is allowed", name,
                   static_cast<long long>(value), static_cast<long long>(bound));
  }
  // Activations are float32 here.
  void activation(const char* name, int32_t dtype) {
    if (failed() || dtype == GRANARY_F32) return;
    status_ =
        fail(GRANARY_UNSUPPORTED, op_, "%s is %d, the CPU library computes in float32 only", name, dtype);
  }
  // Weights and KV may be bfloat16 too.
  void storage(const char* name, int32_t dtype) {
    if (failed() || dtype == GRANARY_F32 || dtype == GRANARY_BF16) return;
    status_ =
        fail(GRANARY_UNSUPPORTED, op_, "%s is %d, only float32 and bfloat16 are stored here", name, dtype);
  }
  // For the verifying mode: element `index` of the int32 array `name` must lie in [low, high).
  void inRange(const char* name, granary_address array, int64_t count, int64_t low, int64_t high);

 private:
  void set(int32_t status, const char* text) { status_ = fail(status, op_, "%s", text); }

  const char* op_;
  int32_t status_ = GRANARY_OK;
};

}  // namespace granary
