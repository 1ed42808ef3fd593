// Products of many rows: the rows are packed once into tiles that stay in L2, the weight passes by panel by
// panel in blocks of its length, packed too (bf16 widened) unless few rows would repay it, so that the inner
// loop reads L1 in order.
//
// Between blocks the sixteen lanes of every sum are kept as they are, so a lane still adds its elements in
// ascending order, and the tree is applied once at the end.
// Bound: the fma units. Aim: more than half of their peak from sixteen rows on.
#include "../simd/packed-tile.h"
#include "product-parts.h"

namespace granary::GRANARY_ISA {

namespace {

// A block of the length: a weight panel and a row tile of it (24 and at most 16 KiB) share L1 with the sums.
constexpr int64_t kBlockLength = 1024;
// Tiles of a panel; a row tile passes over all of them while it is in L1.
constexpr int64_t kPanelTiles = kTileColumns < 6 ? 2 : 1;
constexpr int64_t kPanelColumns = kPanelTiles * kTileColumns;
// Packed rows stay in L2 beside the weights that stream through it and the sums of one panel.
constexpr int64_t kMaxPackedBytes = 768 << 10;
constexpr int64_t kMaxPackedRows = 96;
// Row tiles up to which an f32 panel is read where it lies: packing it would cost more than the strided
// reads.
constexpr int64_t kMaxTilesInPlace = 8;

constexpr int64_t kPanelFloats = kBlockLength * kPanelColumns;
constexpr int64_t kSumFloats = kMaxPackedRows * kPanelColumns * kLanes;

// The packed rows of one call and the scratch beside them.
struct Packed {
  float* rows;   // [tile][step][kTileRows][16], the whole length
  float* panel;  // [kPanelTiles][step][kTileColumns][16], one block
  float* sums;   // [tile][kPanelTiles][kTileSums][16]
  int64_t numTiles;
  int64_t steps;  // of the whole length
};

// A block of the length of one panel.
struct Block {
  int64_t begin, end;
  const float* inPlace;  // the panel's first weight row at `begin`, or null: it is packed
  bool isFirst, isLast;
  int64_t steps() const { return (end - begin + kLanes - 1) / kLanes; }
};

PanelTile panelTileOf(const Product& product, const Packed& packed, const Block& block, int64_t tile) {
  if (block.inPlace == nullptr)
    return {packed.panel + tile * kBlockLength * kTileColumns, kLanes, kTileColumns * kLanes};
  return {block.inPlace + tile * kTileColumns * product.inColumns, product.inColumns, kLanes};
}

// What call number `call` of `calls` asks for of the weight rows that the next block or panel begins with: a
// part of a row, or two rows when the calls are few. Spread evenly, because a burst would wait for memory.
template <typename W>
Ahead aheadOf(const Product& product, const W* next, int64_t call, int64_t calls, const float* nothing) {
  const int64_t partsARow = calls < kPanelColumns ? 1 : calls / kPanelColumns;
  const int64_t rowsACall = calls < kPanelColumns ? 2 : 1;
  constexpr int64_t stepBytes = kLanes * sizeof(W);
  const auto rowAt = [&](int64_t c) {
    if (next == nullptr || c >= kPanelColumns) return reinterpret_cast<const char*>(nothing);
    return reinterpret_cast<const char*>(next + c * product.inColumns) +
           call % partsARow * (kBlockLength / kLanes * stepBytes / partsARow);
  };
  const int64_t c = call / partsARow * rowsACall;
  return {rowAt(c), rowsACall == 2 ? rowAt(c + 1) : reinterpret_cast<const char*>(nothing),
          stepBytes / partsARow};
}

// Multiplies every packed row with one block of a panel.
template <typename W>
void multiplyBlock(const Product& product, const Packed& packed, const ProductRange& part, const Block& block,
                   const W* next) {
  const int64_t columns = part.columnEnd - part.columnBegin;
  const AddBlock<ProductTile> add = addBlockOf<ProductTile>(block.isFirst, block.isLast);
  const int64_t calls = packed.numTiles * ((columns + kTileColumns - 1) / kTileColumns);
  int64_t call = 0;
  for (int64_t tile = 0; tile < packed.numTiles; ++tile) {
    const float* x = packed.rows + (tile * packed.steps * kLanes + block.begin) * kTileRows;
    const int64_t row = part.rowBegin + tile * kTileRows;
    for (int64_t t = 0; t * kTileColumns < columns; ++t, ++call) {
      const int64_t column = part.columnBegin + t * kTileColumns;
      const ProductTile result = {product, row, column, part.rowEnd - row,
                                  least(part.columnEnd - column, kTileColumns)};
      add(x, panelTileOf(product, packed, block, t), block.steps(),
          packed.sums + (tile * kPanelTiles + t) * kTileSums * kLanes, aheadOf(product, next, call, calls, x),
          result);
    }
  }
}

template <typename W>
void packPanel(const Product& product, const Packed& packed, const W* weight, int64_t columns,
               const Block& block) {
  for (int64_t t = 0; t * kTileColumns < columns; ++t) {
    packTile<kTileColumns, W>(packed.panel + t * kBlockLength * kTileColumns,
                              static_cast<int>(least(columns - t * kTileColumns, kTileColumns)), block.begin,
                              block.end,
                              [&](int64_t c) { return weight + (t * kTileColumns + c) * product.inColumns; });
  }
}

// All packed rows times one panel: the columns of `part`. `isLast` says that no panel follows.
template <typename W>
void multiplyPanel(const Product& product, const Packed& packed, const ProductRange& part, bool isLast) {
  const W* weight = static_cast<const W*>(product.weight) + part.columnBegin * product.inColumns;
  const int64_t columns = part.columnEnd - part.columnBegin;
  for (int64_t begin = 0; begin < product.inColumns; begin += kBlockLength) {
    Block block = {
        .begin = begin,
        .end = least(begin + kBlockLength, product.inColumns),
        .inPlace = nullptr,
        .isFirst = begin == 0,
        .isLast = begin + kBlockLength >= product.inColumns,
    };
    const bool isWhole = columns == kPanelColumns && (block.end - begin) % kLanes == 0;
    if constexpr (sizeof(W) == sizeof(float)) {
      if (isWhole && packed.numTiles <= kMaxTilesInPlace) block.inPlace = weight + begin;
    }
    if (block.inPlace == nullptr) packPanel(product, packed, weight, columns, block);
    const W* next = !block.isLast ? weight + block.end
                    : isLast      ? nullptr
                                  : weight + kPanelColumns * product.inColumns;
    multiplyBlock(product, packed, part, block, next);
  }
}

void packRows(const Product& product, const ProductRange& part, const Packed& packed) {
  for (int64_t tile = 0; tile < packed.numTiles; ++tile) {
    const int64_t row = part.rowBegin + tile * kTileRows;
    packTile<kTileRows, float>(packed.rows + tile * packed.steps * kTileRows * kLanes,
                               static_cast<int>(least(part.rowEnd - row, kTileRows)), 0, product.inColumns,
                               [&](int r) { return rowOf(product, row + r); });
  }
}

template <typename W>
void multiplyRows(const Product& product, ProductRange part, const Packed& packed) {
  const int64_t columnEnd = part.columnEnd;
  packRows(product, part, packed);
  for (; part.columnBegin < columnEnd; part.columnBegin += kPanelColumns) {
    part.columnEnd = least(part.columnBegin + kPanelColumns, columnEnd);
    // The panel behind a partial one would end outside the range; asking ahead is for whole panels.
    multiplyPanel<W>(product, packed, part, part.columnBegin + 2 * kPanelColumns > columnEnd);
  }
}

}  // namespace

int64_t packedRows(int64_t inColumns, int64_t workspaceBytes) {
  const int64_t floats = workspaceBytes / static_cast<int64_t>(sizeof(float)) - kPanelFloats - kSumFloats;
  const int64_t most = least(floats, kMaxPackedBytes / static_cast<int64_t>(sizeof(float)));
  return least(most / roundUp(inColumns, kLanes) / kTileRows * kTileRows, kMaxPackedRows);
}

void multiplyPacked(const Product& product, const ProductRange& range, Workspace workspace,
                    int64_t rowsAtOnce) {
  float* memory = reinterpret_cast<float*>(workspace.memory);
  ProductRange part = range;
  for (; part.rowBegin < range.rowEnd; part.rowBegin += rowsAtOnce) {
    part.rowEnd = least(part.rowBegin + rowsAtOnce, range.rowEnd);
    const Packed packed = {
        .rows = memory + kPanelFloats + kSumFloats,
        .panel = memory,
        .sums = memory + kPanelFloats,
        .numTiles = (part.rowEnd - part.rowBegin + kTileRows - 1) / kTileRows,
        .steps = (product.inColumns + kLanes - 1) / kLanes,
    };
    if (product.weightIsBf16) multiplyRows<uint16_t>(product, part, packed);
    else multiplyRows<float>(product, part, packed);
  }
}

}  // namespace granary::GRANARY_ISA
