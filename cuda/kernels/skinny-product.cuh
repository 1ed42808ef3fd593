// out = x * weight^T (+ bias) (+ residual) for few rows of x: the weight streams through once, at the card's
// read rate. With kIsGated the weight holds gate rows, then up rows, and out = activation(gate) * up.
//   x         [rows, inColumns]        bf16, with a stride; inColumns a multiple of 64, 16-byte aligned
//   weight    [outColumns, inColumns]  bf16; gated: [2 * outColumns, inColumns]
//   bias      [weight rows]            f32
//   residual  [rows, outColumns]       the output's type, with a stride; may be out
//   out       [rows, outColumns]       bf16 or f32, with a stride
// A block takes 16 * kWeightTiles weight rows and 8 * kRowTiles rows of x; its warps take turns along k, 64
// at a time, and add up at the end in the order of their numbers: a row's result does not depend on how many
// there are. The weight goes to the tensor cores as their 16-row operand. Every thread copies to a ring in
// shared memory the very pieces that it will multiply, so no barrier is needed; a dot product may take k in
// any order, so the 16 bytes a thread has of a row serve as they lie. The ring fills before the previous
// kernel has ended, since weights are constant. Bound: HBM, bytes = weight.
#pragma once
#include "activation.cuh"
#include "matrix.cuh"

constexpr int kSkinnyWarps = 8;
constexpr int kSkinnyThreads = kSkinnyWarps * kWarpSize;
constexpr int kSkinnyDepth = 64;  // of k a warp takes at a time: a 128-byte line of every weight row
constexpr int kWeightTileRows = 16;
constexpr int kXTileRows = 8;

struct SkinnyWeight {
  const Bf16* weight;
  const float* bias;
  int inColumns, outColumns, activation;
};

struct SkinnyParams {
  SkinnyWeight matrix;
  const Bf16* x;
  const void* residual;
  void* out;
  long long xStride, residualStride, outStride;
  int rows, isOutFloat;
};

template <int kWeightTiles, int kRowTiles, int kStages>
struct SkinnyShape {
  static constexpr int kWeightRows = kWeightTiles * kWeightTileRows;
  static constexpr int kRows = kRowTiles * kXTileRows;
  static constexpr int kPieces = kWeightTiles * 4;  // 16-byte pieces of a thread and stage
  static constexpr int kRingBytes = kStages * kPieces * kSkinnyThreads * kChunkBytes;
  static constexpr int kSumBytes = kSkinnyWarps * kWeightRows * kRows * static_cast<int>(sizeof(float));
  static constexpr int kSharedBytes = kRingBytes > kSumBytes ? kRingBytes : kSumBytes;
};

// Output column of the block's weight row, and the row of the weight that it is.
template <int kWeightTiles, bool kIsGated>
__device__ __forceinline__ int skinnyColumn(int tileRow) {
  constexpr int kColumns = kWeightTiles * kWeightTileRows / (kIsGated ? 2 : 1);
  return blockIdx.x * kColumns + tileRow % kColumns;
}
template <int kWeightTiles, bool kIsGated>
__device__ __forceinline__ int skinnyWeightRow(const SkinnyWeight& matrix, int tileRow) {
  const int column = min(skinnyColumn<kWeightTiles, kIsGated>(tileRow), matrix.outColumns - 1);
  const bool isUp = kIsGated && tileRow >= kWeightTiles * kWeightTileRows / 2;
  return column + (isUp ? matrix.outColumns : 0);
}

// This thread's pieces of a 64-deep chunk: of each weight tile rows lane / 4 and lane / 4 + 8, of each row
// the 16 bytes at lane % 4 * 16 and the same of the line's second half.
template <int kWeightTiles, bool kIsGated>
struct SkinnySource {
  const char* rows[2 * kWeightTiles];

  __device__ __forceinline__ SkinnySource(const SkinnyWeight& matrix) {
    const int lane = threadIdx.x % kWarpSize;
#pragma unroll
    for (int i = 0; i < 2 * kWeightTiles; ++i) {
      const int row = skinnyWeightRow<kWeightTiles, kIsGated>(matrix, i * 8 + lane / 4);
      const Bf16* source = matrix.weight + static_cast<long long>(row) * matrix.inColumns;
      rows[i] = reinterpret_cast<const char*>(source) + lane % 4 * kChunkBytes;
    }
  }

  __device__ __forceinline__ void copy(unsigned slot, int chunk) const {
#pragma unroll
    for (int i = 0; i < 4 * kWeightTiles; ++i) {
      const char* source = rows[i / 2] + static_cast<long long>(chunk) * (kSkinnyDepth * 2) + i % 2 * 64;
      copyChunkAsync(slot + i * kSkinnyThreads * kChunkBytes, source, true);
    }
  }
};

// x pieces that face them: row lane / 4 of each tile, the same columns. xRow(tile) gives that row, or null.
template <int kRowTiles>
struct SkinnyX {
  uint4 halves[2][kRowTiles];

  template <typename XRow>
  __device__ __forceinline__ void load(XRow xRow, int chunk, int numChunks) {
#pragma unroll
    for (int i = 0; i < 2 * kRowTiles; ++i) {
      const Bf16* row = xRow(i / 2);
      const Bf16* source = row + chunk * kSkinnyDepth + i % 2 * 32 + threadIdx.x % 4 * 8;
      const bool isThere = row != nullptr && chunk < numChunks;
      halves[i % 2][i / 2] = isThere ? *reinterpret_cast<const uint4*>(source) : uint4{};
    }
  }
};

template <int kWeightTiles, int kRowTiles>
using SkinnySums = float[kWeightTiles][kRowTiles][4];

// sums += the thread's pieces of one half of a chunk.
template <int kWeightTiles, int kRowTiles>
__device__ __forceinline__ void multiplySkinny(SkinnySums<kWeightTiles, kRowTiles>& sums, unsigned slot,
                                               int half, const uint4 (&x)[kRowTiles]) {
#pragma unroll
  for (int tile = 0; tile < kWeightTiles; ++tile) {
    uint4 low, high;
    loadChunk(low, slot + (tile * 4 + half) * kSkinnyThreads * kChunkBytes);
    loadChunk(high, slot + (tile * 4 + 2 + half) * kSkinnyThreads * kChunkBytes);
    const unsigned first[4] = {low.x, high.x, low.y, high.y};
    const unsigned second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
    for (int row = 0; row < kRowTiles; ++row) {
      multiplyAdd(sums[tile][row], first, x[row].x, x[row].y);
      multiplyAdd(sums[tile][row], second, x[row].z, x[row].w);
    }
  }
}

// The warps' sums, [warp][row][weight row], over the ring that nobody needs any more.
template <int kWeightTiles, int kRowTiles>
__device__ __forceinline__ void gatherSkinny(float* shared, const SkinnySums<kWeightTiles, kRowTiles>& sums) {
  constexpr int kWeightRows = kWeightTiles * kWeightTileRows;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  waitCopies<0>();
  __syncthreads();
  float* own = shared + warp * kRowTiles * kXTileRows * kWeightRows;
#pragma unroll
  for (int tile = 0; tile < kWeightTiles; ++tile) {
#pragma unroll
    for (int row = 0; row < kRowTiles; ++row) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int xRow = row * kXTileRows + lane % 4 * 2 + i % 2;
        own[xRow * kWeightRows + tile * kWeightTileRows + lane / 4 + i / 2 * 8] = sums[tile][row][i];
      }
    }
  }
  __syncthreads();
}

// Leaves the block's sums in `shared`, [warp][row][weight row]. `beforeX` runs between asking for the first
// weights and reading x.
template <int kWeightTiles, int kRowTiles, int kStages, bool kIsGated, typename BeforeX, typename XRow>
__device__ __forceinline__ void multiplySkinnyBlock(const SkinnyWeight& matrix, float* shared,
                                                    BeforeX beforeX, XRow xRow) {
  constexpr unsigned kStageBytes =
      SkinnyShape<kWeightTiles, kRowTiles, kStages>::kPieces * kSkinnyThreads * kChunkBytes;
  const unsigned ring = sharedAddress(shared) + threadIdx.x * kChunkBytes;
  const int numChunks = matrix.inColumns / kSkinnyDepth, firstChunk = threadIdx.x / kWarpSize;
  const SkinnySource<kWeightTiles, kIsGated> source(matrix);
#pragma unroll
  for (int stage = 0; stage < kStages; ++stage) {
    const int chunk = firstChunk + stage * kSkinnyWarps;
    if (chunk < numChunks) source.copy(ring + stage * kStageBytes, chunk);
    commitCopies();
  }
  beforeX();

  // x comes from the L2 cache, behind all the weights on their way: it is asked for some steps ahead.
  constexpr int kXAhead = kRowTiles == 1 ? 4 : kRowTiles == 2 ? 2 : 1;
  SkinnySums<kWeightTiles, kRowTiles> sums = {};
  unsigned slot = ring;
  // Multiplies a chunk, then asks for the weights and the x that come later in its places.
  const auto step = [&](int chunk, SkinnyX<kRowTiles>& x) {
    if (chunk >= numChunks) return;
    waitCopies<kStages - 1>();
    multiplySkinny<kWeightTiles, kRowTiles>(sums, slot, 0, x.halves[0]);
    multiplySkinny<kWeightTiles, kRowTiles>(sums, slot, 1, x.halves[1]);
    const int next = chunk + kStages * kSkinnyWarps;
    if (next < numChunks) source.copy(slot, next);
    commitCopies();
    slot = slot + kStageBytes == ring + kStages * kStageBytes ? ring : slot + kStageBytes;
    x.load(xRow, chunk + kXAhead * kSkinnyWarps, numChunks);
  };
  SkinnyX<kRowTiles> ahead[kXAhead];
#pragma unroll
  for (int i = 0; i < kXAhead; ++i) ahead[i].load(xRow, firstChunk + i * kSkinnyWarps, numChunks);
  for (int chunk = firstChunk; chunk < numChunks; chunk += kXAhead * kSkinnyWarps) {
#pragma unroll
    for (int i = 0; i < kXAhead; ++i) step(chunk + i * kSkinnyWarps, ahead[i]);
  }
  gatherSkinny<kWeightTiles, kRowTiles>(shared, sums);
}

// Sum of all warps at (row, weight row), bias included.
template <int kWeightTiles, int kRowTiles, bool kIsGated>
__device__ __forceinline__ float skinnyTotal(const SkinnyWeight& matrix, const float* shared, int row,
                                             int tileRow) {
  constexpr int kWeightRows = kWeightTiles * kWeightTileRows;
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kSkinnyWarps; ++warp) {
    total += shared[(warp * kRowTiles * kXTileRows + row) * kWeightRows + tileRow];
  }
  if (matrix.bias != nullptr) total += matrix.bias[skinnyWeightRow<kWeightTiles, kIsGated>(matrix, tileRow)];
  return total;
}

// Hands every value of the first `rows` rows to store(row, output column, value).
template <int kWeightTiles, int kRowTiles, bool kIsGated, typename Store>
__device__ __forceinline__ void storeSkinnyBlock(const SkinnyWeight& matrix, const float* shared, int rows,
                                                 Store store) {
  constexpr int kColumns = kWeightTiles * kWeightTileRows / (kIsGated ? 2 : 1);
  for (int i = threadIdx.x; i < rows * kColumns; i += kSkinnyThreads) {
    const int row = i / kColumns, tileRow = i % kColumns;
    const int column = skinnyColumn<kWeightTiles, kIsGated>(tileRow);
    if (column >= matrix.outColumns) continue;
    float value = skinnyTotal<kWeightTiles, kRowTiles, kIsGated>(matrix, shared, row, tileRow);
    if (kIsGated) {
      value = activate(value, matrix.activation) *
              skinnyTotal<kWeightTiles, kRowTiles, kIsGated>(matrix, shared, row, tileRow + kColumns);
    }
    store(row, column, value);
  }
}

__device__ __forceinline__ void storeSkinny(const SkinnyParams& p, int row, int column, float value) {
  const long long at = row * p.outStride + column, from = row * p.residualStride + column;
  if (p.isOutFloat) {
    if (p.residual != nullptr) value += static_cast<const float*>(p.residual)[from];
    static_cast<float*>(p.out)[at] = value;
  } else {
    if (p.residual != nullptr) value += toFloat(static_cast<const Bf16*>(p.residual)[from]);
    static_cast<Bf16*>(p.out)[at] = fromFloat<Bf16>(value);
  }
}

// Grid: blocks of 16 * kWeightTiles weight rows.
template <int kWeightTiles, int kRowTiles, int kStages, bool kIsGated>
__global__ void __launch_bounds__(kSkinnyThreads)
    skinnyProductKernel(const __grid_constant__ SkinnyParams p) {
  extern __shared__ float shared[];
  releaseNext();
  const auto xRow = [&](int tile) {
    const int row = tile * kXTileRows + threadIdx.x % kWarpSize / 4;
    return row < p.rows ? p.x + row * p.xStride : nullptr;
  };
  const auto store = [&](int row, int column, float value) { storeSkinny(p, row, column, value); };
  multiplySkinnyBlock<kWeightTiles, kRowTiles, kStages, kIsGated>(p.matrix, shared, waitForPrevious, xRow);
  storeSkinnyBlock<kWeightTiles, kRowTiles, kIsGated>(p.matrix, shared, p.rows, store);
}
