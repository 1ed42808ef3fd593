// Products on one thread, in two ways with the same bits: few rows stream the weight from where it lies; many rows are packed
// once into tiles, and the weight is packed (bf16 widened) panel by panel, so that the inner loop reads L1 in order.
//
// Packing cuts the length into blocks. Between blocks the sixteen lanes of every sum are kept as they are, so a lane still adds
// its elements in ascending order, and the tree is applied once at the end.
// Bound: memory for few rows, the fma units for many. Aim: the machine's read rate; more than half of its fma peak.
#include "product.h"

#include "../simd/dot-tile.h"
#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

// From this many rows on packing pays for itself.
constexpr int64_t kMinPackedRows = 8;
// A block of the length: a weight panel and a row tile of it (12 and 8 KiB on AVX-512) share L1 with the sums.
constexpr int64_t kBlockLength = 512;
// Sums of one panel: 6 KiB to 36 KiB, in L2 with the packed rows.
constexpr int64_t kMaxPackedRows = 96;

constexpr int64_t kPanelFloats = kBlockLength * kTileColumns;

const float* rowOf(const Product& product, int64_t row) {
  return product.x + (product.xRows == nullptr ? row : product.xRows[row]) * product.xStride;
}

void finish(const Product& product, int64_t row, int64_t column, float sum) {
  if (product.bias != nullptr) sum += product.bias[column];
  if (product.residual != nullptr) sum += product.residual[row * product.residualStride + column];
  product.out[row * product.outStride + column] = sum;
}

template <typename W>
void multiplyStreamed(const Product& product, const ProductRange& range) {
  const W* weight = static_cast<const W*>(product.weight);
  for (int64_t column = range.columnBegin; column < range.columnEnd; column += kTileColumns) {
    const int columns = static_cast<int>(range.columnEnd - column < kTileColumns ? range.columnEnd - column : kTileColumns);
    const W* weightRows[kTileColumns];
    for (int c = 0; c < columns; ++c) weightRows[c] = weight + (column + c) * product.inColumns;
    for (int64_t row = range.rowBegin; row < range.rowEnd; row += kTileRows) {
      const int rows = static_cast<int>(range.rowEnd - row < kTileRows ? range.rowEnd - row : kTileRows);
      const float* xRows[kTileRows];
      for (int r = 0; r < rows; ++r) xRows[r] = rowOf(product, row + r);
      float sums[kTileRows * kTileColumns];
      dotTileOf<float, W>(rows, columns)(xRows, weightRows, product.inColumns, sums);
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c) finish(product, row + r, column + c, sums[r * columns + c]);
      }
    }
  }
}

// Interleaves `count` rows in steps of sixteen, [step][tile][16]; missing rows and the tail are zeros.
template <int kTile, typename T, typename RowAt>
void packTile(float* packed, int count, int64_t begin, int64_t end, RowAt rowAt) {
  for (int r = 0; r < kTile; ++r) {
    float* out = packed + r * kLanes;
    const int64_t steps = (end - begin + kLanes - 1) / kLanes;
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

// Adds one block of the length to the sums of a tile.
void addBlock(const float* x, const float* w, int64_t steps, float* kept, bool isFirst) {
  Vec16 sums[kTileRows * kTileColumns];
#pragma GCC unroll 32
  for (int i = 0; i < kTileRows * kTileColumns; ++i) sums[i] = isFirst ? zero() : load(kept + i * kLanes);
  for (int64_t s = 0; s < steps; ++s, x += kTileRows * kLanes, w += kTileColumns * kLanes) {
    Vec16 a[kTileRows];
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) a[r] = load(x + r * kLanes);
#pragma GCC unroll 8
    for (int c = 0; c < kTileColumns; ++c) {
      const Vec16 b = load(w + c * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r) sums[r * kTileColumns + c] = fma(a[r], b, sums[r * kTileColumns + c]);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < kTileRows * kTileColumns; ++i) store(kept + i * kLanes, sums[i]);
}

// The packed rows of one call and the scratch beside them.
struct Packed {
  float* rows;   // [tile][step][kTileRows][16], the whole length
  float* panel;  // one block of kTileColumns weight rows
  float* sums;   // [tile][kTileRows * kTileColumns][16]
  int64_t numTiles;
  int64_t steps;  // of the whole length
};

void finishTile(const Product& product, const float* kept, int64_t row, int rows, int64_t column, int columns) {
  Vec16 sums[kTileRows * kTileColumns];
  float out[kTileRows * kTileColumns];
  for (int i = 0; i < kTileRows * kTileColumns; ++i) sums[i] = load(kept + i * kLanes);
  reduceSums<kTileRows * kTileColumns>(sums, out);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) finish(product, row + r, column + c, out[r * kTileColumns + c]);
  }
}

template <typename W>
void multiplyPanel(const Product& product, const Packed& packed, const ProductRange& rows, int64_t column, int columns) {
  const W* weight = static_cast<const W*>(product.weight) + column * product.inColumns;
  constexpr int64_t tileSums = kTileRows * kTileColumns * kLanes;
  for (int64_t begin = 0; begin < product.inColumns; begin += kBlockLength) {
    const int64_t end = begin + kBlockLength < product.inColumns ? begin + kBlockLength : product.inColumns;
    packTile<kTileColumns, W>(packed.panel, columns, begin, end, [&](int c) { return weight + c * product.inColumns; });
    const int64_t steps = (end - begin + kLanes - 1) / kLanes;
    const float* block = packed.rows + begin * kTileRows;
    for (int64_t tile = 0; tile < packed.numTiles; ++tile) {
      addBlock(block + tile * packed.steps * kTileRows * kLanes, packed.panel, steps, packed.sums + tile * tileSums,
               begin == 0);
    }
  }
  for (int64_t tile = 0; tile < packed.numTiles; ++tile) {
    const int64_t row = rows.rowBegin + tile * kTileRows;
    const int count = static_cast<int>(rows.rowEnd - row < kTileRows ? rows.rowEnd - row : kTileRows);
    finishTile(product, packed.sums + tile * tileSums, row, count, column, columns);
  }
}

template <typename W>
void multiplyPacked(const Product& product, const ProductRange& range, const Packed& packed) {
  for (int64_t tile = 0; tile < packed.numTiles; ++tile) {
    const int64_t row = range.rowBegin + tile * kTileRows;
    const int count = static_cast<int>(range.rowEnd - row < kTileRows ? range.rowEnd - row : kTileRows);
    packTile<kTileRows, float>(packed.rows + tile * packed.steps * kTileRows * kLanes, count, 0, product.inColumns,
                               [&](int r) { return rowOf(product, row + r); });
  }
  for (int64_t column = range.columnBegin; column < range.columnEnd; column += kTileColumns) {
    const int64_t left = range.columnEnd - column;
    multiplyPanel<W>(product, packed, range, column, static_cast<int>(left < kTileColumns ? left : kTileColumns));
  }
}

template <typename W>
void multiply(const Product& product, const ProductRange& range, Workspace workspace) {
  const int64_t rowsAtOnce = packedRows(product.inColumns, workspace.bytes);
  const int64_t count = range.rowEnd - range.rowBegin;
  if (count < kMinPackedRows || rowsAtOnce < kMinPackedRows || product.inColumns == 0) {
    multiplyStreamed<W>(product, range);
    return;
  }
  float* memory = reinterpret_cast<float*>(workspace.memory);
  ProductRange part = range;
  for (; part.rowBegin < range.rowEnd; part.rowBegin += rowsAtOnce) {
    part.rowEnd = part.rowBegin + rowsAtOnce < range.rowEnd ? part.rowBegin + rowsAtOnce : range.rowEnd;
    const int64_t numTiles = (part.rowEnd - part.rowBegin + kTileRows - 1) / kTileRows;
    const Packed packed = {
        .rows = memory + kPanelFloats + kMaxPackedRows * kTileColumns * kLanes,
        .panel = memory,
        .sums = memory + kPanelFloats,
        .numTiles = numTiles,
        .steps = (product.inColumns + kLanes - 1) / kLanes,
    };
    multiplyPacked<W>(product, part, packed);
  }
}

}  // namespace

int64_t packedRows(int64_t inColumns, int64_t workspaceBytes) {
  const int64_t floats =
      workspaceBytes / static_cast<int64_t>(sizeof(float)) - kPanelFloats - kMaxPackedRows * kTileColumns * kLanes;
  const int64_t rows = floats / roundUp(inColumns < 1 ? 1 : inColumns, kLanes) / kTileRows * kTileRows;
  return rows < kMaxPackedRows ? rows : kMaxPackedRows;
}

void multiplyRange(const Product& product, const ProductRange& range, Workspace workspace) {
  if (product.weightIsBf16) multiply<uint16_t>(product, range, workspace);
  else multiply<float>(product, range, workspace);
}

}  // namespace granary::GRANARY_ISA
