// The choice of a kernel for products of few rows, from the table of the card at hand.
#include "product-choice.h"

#include <cstdlib>
#include <cstring>

#include "cublaslt.h"
#include "product-table-nvidiah200.h"

namespace granary {

namespace {

constexpr CardProducts kCardProducts[] = {productsOf("NVIDIA H200", kNVIDIAH200Products)};

const CardProducts* card = nullptr;
char forced = 0;

// Where nothing was measured: our own kernel as long as every read of x serves as many weights.
ProductKernel unmeasured(int32_t rows) {
  if (rows <= 8) return ProductKernel::kNarrow;
  return rows <= 16 ? ProductKernel::kWide : ProductKernel::kLibrary;
}

ProductKernel measured(int32_t rows, int32_t outColumns, int32_t inColumns, bool isGated) {
  for (int32_t i = 0; card != nullptr && i < card->count; ++i) {
    const ProductEntry& entry = card->entries[i];
    if (entry.outColumns != outColumns || entry.inColumns != inColumns || entry.isGated != isGated) continue;
    for (int bucket = 0; bucket < kNumProductRows; ++bucket) {
      if (rows <= kProductRows[bucket]) return static_cast<ProductKernel>(entry.choices[bucket]);
    }
  }
  return unmeasured(rows);
}

}  // namespace

void openProductChoice(const char* cardName) {
  card = nullptr;
  for (const CardProducts& candidate : kCardProducts) {
    if (std::strcmp(candidate.cardName, cardName) == 0) card = &candidate;
  }
  const char* given = std::getenv("GRANARY_PRODUCTS");
  forced = given == nullptr ? 0 : given[0];
}

ProductKernel chooseProduct(int32_t rows, int32_t outColumns, int32_t inColumns, bool isGated) {
  if (forced != 0) return static_cast<ProductKernel>(forced);
  const ProductKernel choice = measured(rows, outColumns, inColumns, isGated);
  return choice == ProductKernel::kLibrary && cublasLtVersion() == 0 ? ProductKernel::kWide : choice;
}

}  // namespace granary
