// The inner loop of packed products: one block of the length for a tile of rows and columns, the sums in
// registers.
#pragma once
#include "dot-tile.h"

namespace granary::GRANARY_ISA {

constexpr int64_t kTileSums = kTileRows * kTileColumns;

// kTileColumns weight rows of a block: packed, or where they lie. Strides count elements.
struct PanelTile {
  const float* first;
  int64_t columnStride;
  int64_t stepStride;
};

// Lines to ask for while a block is computed: two streams, so many bytes a step of sixteen elements.
struct Ahead {
  const char* first;
  const char* second;
  int64_t stepBytes;
};

// Interleaves `count` rows in steps of sixteen, [step][kTile][16]; missing rows and the tail are zeros.
template <int kTile, typename T, typename RowAt>
static inline void packTile(float* packed, int count, int64_t begin, int64_t end, RowAt rowAt) {
  const int64_t steps = (end - begin + kLanes - 1) / kLanes;
  for (int r = 0; r < kTile; ++r) {
    float* out = packed + r * kLanes;
    if (r >= count) {
      for (int64_t s = 0; s < steps; ++s) store(out + s * kTile * kLanes, zero());
      continue;
    }
    const T* in = rowAt(r);
    int64_t k = begin;
    for (; k + kLanes <= end; k += kLanes, out += kTile * kLanes) store(out, load(in + k));
    if (k < end) store(out, loadTail(in + k, static_cast<int>(end - k)));
  }
}

// x is [step][kTileRows][16]. `isFirst` starts the sums, `isLast` applies the tree and emits them as dotTile
// does; between blocks the sixteen lanes of every sum are kept in `kept`.
template <bool isFirst, bool isLast, typename Emit>
static void addBlock(const float* x, PanelTile w, int64_t steps, float* kept, Ahead ahead, const Emit& emit) {
  const float* wRow[kTileColumns];
#pragma GCC unroll 8
  for (int c = 0; c < kTileColumns; ++c) wRow[c] = w.first + c * w.columnStride;
  Vec16 sums[kTileSums];
#pragma GCC unroll 32
  for (int i = 0; i < kTileSums; ++i) sums[i] = isFirst ? zero() : load(kept + i * kLanes);
  int64_t k = 0;
  for (int64_t s = 0; s < steps; ++s, x += kTileRows * kLanes, k += w.stepStride) {
    _mm_prefetch(ahead.first, _MM_HINT_T1);
    _mm_prefetch(ahead.second, _MM_HINT_T1);
    ahead.first += ahead.stepBytes;
    ahead.second += ahead.stepBytes;
    Vec16 a[kTileRows];
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) a[r] = inRegister(load(x + r * kLanes));
#pragma GCC unroll 8
    for (int c = 0; c < kTileColumns; ++c) {
      const Vec16 b = inRegister(load(wRow[c] + k));
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r)
        sums[r * kTileColumns + c] = fma(a[r], b, sums[r * kTileColumns + c]);
    }
  }
  if constexpr (isLast) {
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) emit(r, reduceSums<kTileColumns>(sums + r * kTileColumns));
  } else {
#pragma GCC unroll 32
    for (int i = 0; i < kTileSums; ++i) store(kept + i * kLanes, sums[i]);
  }
}

template <typename Emit>
using AddBlock = void (*)(const float* x, PanelTile w, int64_t steps, float* kept, Ahead ahead,
                          const Emit& emit);

template <typename Emit>
GRANARY_INLINE AddBlock<Emit> addBlockOf(bool isFirst, bool isLast) {
  if (isFirst) return isLast ? addBlock<true, true, Emit> : addBlock<true, false, Emit>;
  return isLast ? addBlock<false, true, Emit> : addBlock<false, false, Emit>;
}

}  // namespace granary::GRANARY_ISA
