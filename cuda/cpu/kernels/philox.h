// Philox4x32-10: a random number as a pure function of key and counter.
#pragma once
#include <stdint.h>

namespace granary::GRANARY_ISA {

// The first of the four words for counter {c0, c1, c2, c3}.
static inline uint32_t philox(uint32_t key0, uint32_t key1, uint32_t c0, uint32_t c1, uint32_t c2,
                              uint32_t c3) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(0xd2511f53u) * c0;
    const uint64_t product1 = static_cast<uint64_t>(0xcd9e8d57u) * c2;
    const uint32_t next0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    const uint32_t next2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c1 = static_cast<uint32_t>(product1);
    c3 = static_cast<uint32_t>(product0);
    c0 = next0;
    c2 = next2;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return c0;
}

}  // namespace granary::GRANARY_ISA
