// Dot products of R rows with C rows at once: 16 lanes over the length by fma in ascending order, a
// zero-filled tail, the one tree. A result depends on its own two rows only, never on the tile it was
// computed in.
#pragma once
#include "reduce.h"

namespace granary::GRANARY_ISA {

// The tile that keeps its sums in registers: 4 x 6 of 32, or 2 x 3 pairs of 16.
#ifdef __AVX512F__
constexpr int kTileRows = 4;
constexpr int kTileColumns = 6;
#else
constexpr int kTileRows = 2;
constexpr int kTileColumns = 3;
#endif

// x[r] . w[c] for a tile; emit(r, sums) takes the sums of a row in the first C of eight lanes.
template <int R, int C, typename X, typename W, typename Emit>
static void dotTile(const X* const* x, const W* const* w, int64_t length, const Emit& emit) {
  Vec16 sums[R * C];
#pragma GCC unroll 32
  for (int i = 0; i < R * C; ++i) sums[i] = zero();
  const X* xRow[R];
  const W* wRow[C];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) xRow[r] = x[r];
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) wRow[c] = w[c];
  int64_t k = 0;
  for (; k + kLanes <= length; k += kLanes) {
    Vec16 a[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) a[r] = inRegister(load(xRow[r] + k));
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const Vec16 b = inRegister(load(wRow[c] + k));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r * C + c] = fma(a[r], b, sums[r * C + c]);
    }
  }
  if (k < length) {
    const int tail = static_cast<int>(length - k);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const Vec16 b = loadTail(wRow[c] + k, tail);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sums[r * C + c] = fma(loadTail(xRow[r] + k, tail), b, sums[r * C + c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) emit(r, reduceSums<C>(sums + r * C));
}

template <typename X, typename W, typename Emit>
using DotTile = void (*)(const X* const* x, const W* const* w, int64_t length, const Emit& emit);

template <typename X, typename W, typename Emit, int R>
GRANARY_INLINE DotTile<X, W, Emit> dotTileOfColumns(int columns) {
  constexpr DotTile<X, W, Emit> few[] = {dotTile<R, 1, X, W, Emit>, dotTile<R, 2, X, W, Emit>,
                                         dotTile<R, 3, X, W, Emit>};
  if constexpr (kTileColumns == 6) {
    constexpr DotTile<X, W, Emit> more[] = {dotTile<R, 4, X, W, Emit>, dotTile<R, 5, X, W, Emit>,
                                            dotTile<R, 6, X, W, Emit>};
    if (columns > 3) return more[columns - 4];
  }
  return few[columns - 1];
}

// The tile for `rows` <= kTileRows and `columns` <= kTileColumns.
template <typename X, typename W, typename Emit>
GRANARY_INLINE DotTile<X, W, Emit> dotTileOf(int rows, int columns) {
  if constexpr (kTileRows == 4) {
    if (rows == 4) return dotTileOfColumns<X, W, Emit, 4>(columns);
    if (rows == 3) return dotTileOfColumns<X, W, Emit, 3>(columns);
  }
  return rows == 2 ? dotTileOfColumns<X, W, Emit, 2>(columns) : dotTileOfColumns<X, W, Emit, 1>(columns);
}

}  // namespace granary::GRANARY_ISA
