// The two ways to multiply, and what they share: where rows come from and how sums leave.
#pragma once
#include "../simd/dot-tile.h"
#include "kernel.h"
#include "product.h"

namespace granary::GRANARY_ISA {

// Streams the weight from where it lies.
void multiplyStreamed(const Product& product, const ProductRange& range);

// Packs rows and weight panels into the workspace. `rowsAtOnce` is what packedRows says.
void multiplyPacked(const Product& product, const ProductRange& range, Workspace workspace,
                    int64_t rowsAtOnce);

GRANARY_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

GRANARY_INLINE const float* rowOf(const Product& product, int64_t row) {
  return product.x + (product.xRows == nullptr ? row : product.xRows[row]) * product.xStride;
}

// Finishes a tile of sums: bias, residual and the write, for its first `rows` rows and `columns` columns.
struct ProductTile {
  const Product& product;
  int64_t row, column;
  int64_t rows, columns;

  GRANARY_INLINE_MEMBER void operator()(int r, __m256 sum) const {
    if (r >= rows) return;
    const __m256i lanes = firstLanes(columns);
    if (product.bias != nullptr) sum = _mm256_add_ps(sum, _mm256_maskload_ps(product.bias + column, lanes));
    if (product.residual != nullptr) {
      const float* residual = product.residual + (row + r) * product.residualStride + column;
      sum = _mm256_add_ps(sum, _mm256_maskload_ps(residual, lanes));
    }
    _mm256_maskstore_ps(product.out + (row + r) * product.outStride + column, lanes, sum);
  }
};

}  // namespace granary::GRANARY_ISA
