// Shape of the tables of measured choices for products of few rows. Each card's table is a file of its own,
// written by scripts/tune-products there; product-choice.cu lists them.
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
  const ProductEntry* entries;
  int32_t count;
};

template <int32_t kCount>
constexpr CardProducts productsOf(const char* cardName, const ProductEntry (&entries)[kCount]) {
  return CardProducts{cardName, entries, kCount};
}

}  // namespace granary
