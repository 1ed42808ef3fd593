// Products of activations with a weight, piece by piece on one thread; linear layers and experts are made of
// these.
#pragma once
#include <stdint.h>

#include "../runtime/library.h"

namespace granary::GRANARY_ISA {

// out[r][c] = x[r] . weight[c] (+ bias[c]) (+ residual[r][c]), in this order. All f32 but the weight.
struct Product {
  const float* x;
  int64_t xStride;
  const int32_t* xRows;  // row r is x + xRows[r] * xStride; null: x + r * xStride
  const void* weight;    // [columns, inColumns], f32 or bf16
  bool weightIsBf16;
  int64_t inColumns;
  const float* bias;      // or null
  const float* residual;  // or null; may be out
  int64_t residualStride;
  float* out;
  int64_t outStride;
};

// Half-open ranges of output rows and columns.
struct ProductRange {
  int64_t rowBegin, rowEnd;
  int64_t columnBegin, columnEnd;
};

// Computes a range. An element's bits do not depend on the range it is asked for in.
void multiplyRange(const Product& product, const ProductRange& range, Workspace workspace);

// Rows that multiplyRange packs at a time: a range of a multiple of this reads the weight once for so many
// rows.
int64_t packedRows(int64_t inColumns, int64_t workspaceBytes);

}  // namespace granary::GRANARY_ISA
