// Tensor maps of paged caches and of weights, for the copy engine of compute capability 9.0. They are encoded
// on the host alone, so that may happen inside a capture.
#pragma once
#include "hopper.cuh"
#include "runtime.h"

namespace granary {

struct CacheLayout {
  granary_address base;
  int64_t pageStrideBytes;
  int32_t pageSize, numKvHeads, dim;
};

// Rows of a page that one copy can move: the largest power of two that divides the page and a block of keys.
int32_t boxRowsOf(int32_t pageSize, int32_t blockKeys);

// Describes a bf16 cache as [page, row, KV head, dim], in boxes of 64 dims and `boxRows` rows of one head.
// Pages and dims outside it read as zeros.
int32_t encodeCacheMap(const CacheLayout& layout, int32_t boxRows, TensorMap& map);

struct MatrixLayout {
  granary_address base;
  int64_t rows, columns, stride;  // elements from row to row
};

// Describes a bf16 matrix as [row, column], in boxes of 64 columns and `boxRows` rows. What lies outside it
// reads as zeros.
int32_t encodeMatrixMap(const MatrixLayout& layout, int32_t boxRows, TensorMap& map);

}  // namespace granary
