// The keys or values of a sequence, block by block: addresses of the rows that are there, holes left out.
#pragma once
#include "attention-task.h"

namespace granary::GRANARY_ISA {

// Keys looked at together: their rows of K or V stay in L1 while every query of a task passes over them. A
// multiple of the columns of a tile.
constexpr int kKeyBlock = 48;

// One cache (K or V) of one sequence. A row holds all KV heads.
struct PagedRows {
  const char* cache;
  int64_t pageStrideBytes;
  const int32_t* pages;  // the sequence's row of the page table
  int64_t pageSize;
  int64_t numHeads;
  int64_t elements;  // of one head
  int32_t dtype;

  int64_t elementBytes() const { return dtype == GRANARY_BF16 ? 2 : 4; }
  int64_t headBytes() const { return elements * elementBytes(); }
  int64_t rowBytes() const { return numHeads * headBytes(); }
};

GRANARY_INLINE PagedRows pagedRows(const GranaryAttention& args, const AttentionTask& task, bool isKey) {
  const int64_t tableRow = at<const int32_t>(args.tableRows)[task.sequence];
  return {
      .cache = at<const char>(isKey ? args.kCache : args.vCache),
      .pageStrideBytes = isKey ? args.kPageStrideBytes : args.vPageStrideBytes,
      .pages = at<const int32_t>(args.pageTable) + tableRow * args.tableWidth,
      .pageSize = args.pageSize,
      .numHeads = args.numKvHeads,
      .elements = isKey ? args.headDim : args.vHeadDim,
      .dtype = args.kvDtype,
  };
}

// Present rows of a block, ascending: all of a row, or the part of one head.
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
      const char* row =
          cache.cache + id * cache.pageStrideBytes + (j - page * cache.pageSize) * cache.rowBytes();
      for (; j < pageEnd; ++j, row += cache.rowBytes()) {
        block.positions[block.count] = static_cast<int32_t>(j);
        block.rows[block.count++] = row;
      }
    }
    j = pageEnd;
  }
}

// Walks over the blocks of positions [first, last], each together with the one that follows it (empty at the
// end).
template <typename Body>
static inline void forEachBlock(const PagedRows& cache, int64_t first, int64_t last, Body body) {
  const auto endOf = [&](int64_t begin) { return begin + kKeyBlock <= last ? begin + kKeyBlock : last + 1; };
  KeyBlock blocks[2];
  int current = 0;
  if (first <= last) findRows(cache, first, endOf(first), blocks[0]);
  for (int64_t begin = first; begin <= last; begin += kKeyBlock, current = 1 - current) {
    KeyBlock& next = blocks[1 - current];
    next.count = 0;
    if (begin + kKeyBlock <= last) findRows(cache, begin + kKeyBlock, endOf(begin + kKeyBlock), next);
    body(blocks[current], next);
  }
}

// The part of one KV head.
static inline void selectHead(const PagedRows& cache, const KeyBlock& rows, int head, KeyBlock& block) {
  block.count = rows.count;
  for (int i = 0; i < rows.count; ++i) {
    block.positions[i] = rows.positions[i];
    block.rows[i] = rows.rows[i] + head * cache.headBytes();
  }
}

// Widens the block's head parts into `buffer`, each padded with zeros to `stride` elements, and points the
// block there.
static inline void copyRows(const PagedRows& cache, KeyBlock& block, float* buffer, int64_t stride) {
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

// Part of a block that lies in [first, last], as half-open indices.
static inline void clip(const KeyBlock& block, int64_t first, int64_t last, int* begin, int* end) {
  int b = 0;
  int e = block.count;
  while (b < e && block.positions[b] < first) ++b;
  while (e > b && block.positions[e - 1] > last) --e;
  *begin = b;
  *end = e;
}

}  // namespace granary::GRANARY_ISA
