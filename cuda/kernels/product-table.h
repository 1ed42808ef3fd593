// Measured choices for products of few rows, card by card. Written by scripts/tune-products on the card; not
// edited by hand.
#pragma once
#include <cstdint>

namespace granary {

// A choice holds up to so many rows.
constexpr int kNumProductRows = 7;
constexpr int32_t kProductRows[kNumProductRows] = {1, 2, 4, 8, 16, 32, 64};

struct ProductEntry {
  int32_t outColumns, inColumns;  // of the weight
  bool isGated;
  char choices[kNumProductRows + 1];  // a ProductKernel each
};

struct CardProducts {
  const char* cardName;
  int32_t count;
  const ProductEntry* entries;
};

constexpr CardProducts kCardProducts[] = {{"", 0, nullptr}};

}  // namespace granary
