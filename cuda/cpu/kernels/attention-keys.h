// The keys or values of one head, block by block: addresses of the rows that are there, holes left out.
#pragma once
#include "kernel.h"

namespace granary::GRANARY_ISA {

// Keys looked at together: their rows of K or V stay in L1 while every query of a task passes over them.
constexpr int kKeyBlock = 32;

// One cache (K or V) of one KV head of one sequence.
struct PagedRows {
  const char* head;       // the head's elements in row 0 of page 0
  int64_t pageStrideBytes;
  int64_t rowStrideBytes;
  const int32_t* pages;   // the sequence's row of the page table
  int64_t pageSize;
  int64_t elements;       // of the head
  int32_t dtype;
};

// Present rows of a block, ascending.
struct KeyBlock {
  int count;
  int32_t positions[kKeyBlock];
  const char* rows[kKeyBlock];
};

// Rows of positions [begin, end), at most kKeyBlock of them.
static inline void findRows(const PagedRows& cache, int64_t begin, int64_t end, KeyBlock& block) {
  block.count = 0;
  for (int64_t j = begin; j < end;) {
    const int64_t page = j / cache.pageSize;
    const int64_t pageEnd = (page + 1) * cache.pageSize < end ? (page + 1) * cache.pageSize : end;
    const int32_t id = cache.pages[page];
    if (id > 0) {
      const char* row = cache.head + id * cache.pageStrideBytes + (j - page * cache.pageSize) * cache.rowStrideBytes;
      for (; j < pageEnd; ++j, row += cache.rowStrideBytes) {
        block.positions[block.count] = static_cast<int32_t>(j);
        block.rows[block.count++] = row;
      }
    }
    j = pageEnd;
  }
}

// Widens the block's rows into `buffer`, each padded with zeros to `stride` elements, and points the block there.
static inline void widenRows(const PagedRows& cache, KeyBlock& block, float* buffer, int64_t stride) {
  for (int i = 0; i < block.count; ++i) {
    float* out = buffer + i * stride;
    const auto copy = [&](auto* in) {
      int64_t e = 0;
      for (; e + kLanes <= cache.elements; e += kLanes) store(out + e, load(in + e));
      if (e < cache.elements) store(out + e, loadTail(in + e, static_cast<int>(cache.elements - e)));
    };
    if (cache.dtype == GRANARY_BF16) copy(reinterpret_cast<const uint16_t*>(block.rows[i]));
    else copy(reinterpret_cast<const float*>(block.rows[i]));
    block.rows[i] = reinterpret_cast<const char*>(out);
  }
}

}  // namespace granary::GRANARY_ISA
