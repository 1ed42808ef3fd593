// Products on one thread, streamed or packed: two ways with the same bits.
#include "product.h"

#include "product-parts.h"

namespace granary::GRANARY_ISA {

namespace {

// From so many rows on packing pays for itself: as soon as a second row tile would read an f32 weight again,
// later when a bf16 weight has to be widened into the panel first.
constexpr int64_t kMinPackedRows = kTileRows + 1;
constexpr int64_t kMinPackedRowsBf16 = 24;

}  // namespace

void multiplyRange(const Product& product, const ProductRange& range, Workspace workspace) {
  const int64_t rowsAtOnce = packedRows(product.inColumns, workspace.bytes);
  const int64_t fewest = product.weightIsBf16 ? kMinPackedRowsBf16 : kMinPackedRows;
  // Rows too long for the workspace are streamed, however many there are.
  const bool isStreamed = range.rowEnd - range.rowBegin < fewest || rowsAtOnce < kTileRows;
  if (isStreamed) multiplyStreamed(product, range);
  else multiplyPacked(product, range, workspace, rowsAtOnce);
}

}  // namespace granary::GRANARY_ISA
