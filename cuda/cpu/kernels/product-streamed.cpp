// Products of few rows: every weight row is read once, from where it lies, by tiles that keep their sums in
// registers.
// Bound: memory. Aim: the read rate of the machine.
#include "product-parts.h"

namespace granary::GRANARY_ISA {

namespace {

template <typename W>
void stream(const Product& product, const ProductRange& range) {
  const W* weight = static_cast<const W*>(product.weight);
  for (int64_t column = range.columnBegin; column < range.columnEnd; column += kTileColumns) {
    const int columns = static_cast<int>(least(range.columnEnd - column, kTileColumns));
    const W* weightRows[kTileColumns];
    for (int c = 0; c < columns; ++c) weightRows[c] = weight + (column + c) * product.inColumns;
    for (int64_t row = range.rowBegin; row < range.rowEnd; row += kTileRows) {
      const int rows = static_cast<int>(least(range.rowEnd - row, kTileRows));
      const float* xRows[kTileRows];
      for (int r = 0; r < rows; ++r) xRows[r] = rowOf(product, row + r);
      const ProductTile tile = {product, row, column, rows, columns};
      dotTileOf<float, W, ProductTile>(rows, columns)(xRows, weightRows, product.inColumns, tile);
    }
  }
}

}  // namespace

void multiplyStreamed(const Product& product, const ProductRange& range) {
  if (product.weightIsBf16) stream<uint16_t>(product, range);
  else stream<float>(product, range);
}

}  // namespace granary::GRANARY_ISA
