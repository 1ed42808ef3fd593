// The two ways to multiply, and what they share: where rows come from and how sums leave.
#pragma once
#include "../simd/dot-tile.h"
#include "kernel.h"
#include "product.h"

namespace granary::GRANARY_ISA {

// Streams the weight from where it lies.
void multiplyStreamed(const Product& product, const ProductRange& range);

// Packs rows and weight panels into the workspace. `rowsAtOnce` is what packedRows says.
void multiplyPacked(const Product& product, const ProductRange& range, Workspace workspace, int64_t rowsAtOnce);

GRANARY_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

GRANARY_INLINE const float* rowOf(const Product& product, int64_t row) {
  return product.x + (product.xRows == nullptr ? row : product.xRows[row]) * product.xStride;
}

// Sums of a tile, with room for the last row to be read eight at a time.
using TileSums = float[kTileRows * kTileColumns + 8];

// Writes up to eight neighbouring columns of a row; eight floats can be read at `sums`.
GRANARY_INLINE void finish(const Product& product, int64_t row, int64_t column, int64_t columns, const float* sums) {
  const __m256i lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(columns)),
                                           _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256 sum = _mm256_loadu_ps(sums);
  if (product.bias != nullptr) sum = _mm256_add_ps(sum, _mm256_maskload_ps(product.bias + column, lanes));
  if (product.residual != nullptr) {
    const float* residual = product.residual + row * product.residualStride + column;
    sum = _mm256_add_ps(sum, _mm256_maskload_ps(residual, lanes));
  }
  _mm256_maskstore_ps(product.out + row * product.outStride + column, lanes, sum);
}

}  // namespace granary::GRANARY_ISA
