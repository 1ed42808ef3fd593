// Selection of the largest entries of a row without sorting it: descending by value, equal values by
// ascending id.
#pragma once
#include <algorithm>

#include "vec16.h"

namespace granary::GRANARY_ISA {

// Value and id in one word that compares like the pair; a NaN ranks below everything, -0 and +0 are equal.
struct Ranked {
  uint64_t key;

  static Ranked of(float value, int32_t id) {
    uint32_t bits;
    const float positiveZero = value + 0.0f;
    memcpy(&bits, &positiveZero, sizeof bits);
    const uint32_t ordered = value != value ? 0 : bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    return {static_cast<uint64_t>(ordered) << 32 | static_cast<uint32_t>(~id)};
  }
  int32_t id() const { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }
};

struct RanksHigher {
  bool operator()(Ranked a, Ranked b) const { return a.key > b.key; }
};

// Writes the k best of `count` values to the front of `buffer`, sorted; `buffer` has room for min(2 * k + 16,
// count + 16). Values are taken in while they beat the k-th best so far, which rarely happens behind the
// first few thousand.
static inline void selectLargest(const float* values, int64_t count, int64_t k, Ranked* buffer) {
  const int64_t capacity = 2 * k < count ? 2 * k : count;
  int64_t used = 0;
  for (; used < capacity; ++used) buffer[used] = Ranked::of(values[used], static_cast<int32_t>(used));
  const auto shrink = [&] {
    if (used > k) std::nth_element(buffer, buffer + (k - 1), buffer + used, RanksHigher{});
    used = k;
    return values[buffer[k - 1].id()];
  };
  if (used > k) {
    float threshold = shrink();
    int64_t i = capacity;
    const auto take = [&](int64_t index) {
      buffer[used++] = Ranked::of(values[index], static_cast<int32_t>(index));
      if (used == capacity) threshold = shrink();
    };
    for (; i + kLanes <= count; i += kLanes) {
      for (uint32_t mask = greaterMask(load(values + i), broadcast(threshold)); mask != 0; mask &= mask - 1) {
        const int64_t index = i + __builtin_ctz(mask);
        if (values[index] > threshold) take(index);
      }
    }
    for (; i < count; ++i) {
      if (values[i] > threshold) take(i);
    }
    shrink();
  }
  std::sort(buffer, buffer + k, RanksHigher{});
}

}  // namespace granary::GRANARY_ISA
