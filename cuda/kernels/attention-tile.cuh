// What a warp of the bf16 attention kernels does with 16 packed query rows: load queries, score keys, keep a
// running softmax, add up values. Fragments follow matrix.cuh: lane l owns rows l / 4 and l / 4 + 8 (index 0
// and 1 below).
//
// kDim is the padded head dimension, a multiple of 16, beyond 128 of 32: a head dimension in between has its
// last chunks filled with zeros. 64, 128, 192 and 256 are compiled ahead of time.
#pragma once
#include "attention-params.cuh"
#include "matrix.cuh"

constexpr int tileRowBytes(int dim) {
  return chunksOfTileRow(dim / kChunkElements) * kChunkBytes;
}

template <int kDim>
struct TileShape {
  static constexpr int kChunks = kDim / kChunkElements;
  static constexpr int kSteps = kDim / 16;   // of 16 dimensions, one matrix instruction deep
  static constexpr int kColumns = kDim / 8;  // of 8 output dimensions, one matrix instruction wide
  static constexpr int kRowBytes = tileRowBytes(kDim);
};

// Copies packed query rows [first, first + numRows) of a KV head into a tile, zeros where there is no row or
// dimension.
template <int kDim>
__device__ __forceinline__ void copyQueries(const AttentionParams& p, unsigned tile,
                                            const SequenceQueries& queries, int kvHead, int first,
                                            int numRows, int thread, int numThreads) {
  constexpr int kChunks = TileShape<kDim>::kChunks;
  const auto* q = static_cast<const Bf16*>(p.q);
  for (int i = thread; i < numRows * kChunks; i += numThreads) {
    const int row = i / kChunks, chunk = i % kChunks;
    const int token = (first + row) / p.group, head = kvHead * p.group + (first + row) % p.group;
    const bool isThere = token < queries.numTokens && chunk * kChunkElements < p.headDim;
    const long long offset =
        (queries.firstRow + token) * p.qStride + head * p.headDim + chunk * kChunkElements;
    copyChunkAsync(tile + tileOffset<kChunks>(row, chunk), q + (isThere ? offset : 0), isThere);
  }
}

// What one lane owns of a warp's 16 rows.
template <int kDim>
struct RowState {
  float maximum[2] = {-kInfinity, -kInfinity};
  float sum[2] = {};  // of this lane's keys only; joined at the end
  float output[TileShape<kDim>::kColumns][4] = {};
};

// Scores of the warp's 16 rows against kKeys keys of a K tile that start at row `firstKey`.
template <int kDim, int kKeys>
__device__ __forceinline__ void scoreKeys(float (&scores)[kKeys / 8][4], unsigned queryTile, int queryRow,
                                          unsigned keyTile, int firstKey, int headDim) {
  constexpr int kChunks = TileShape<kDim>::kChunks;
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int step = 0; step < TileShape<kDim>::kSteps; ++step) {
    if (step * 16 >= headDim) break;
    unsigned query[4];
    // Matrices: rows 0-7 and 8-15 of the low eight dimensions, then of the high eight.
    loadMatrices(query, queryTile + tileOffset<kChunks>(queryRow + lane % 16, 2 * step + lane / 16));
#pragma unroll
    for (int pair = 0; pair < kKeys / 16; ++pair) {
      unsigned keys[4];
      // Matrices: keys 0-7 low and high dimensions, then keys 8-15.
      const int row = firstKey + pair * 16 + lane % 8 + lane / 16 * 8;
      loadMatrices(keys, keyTile + tileOffset<kChunks>(row, 2 * step + lane / 8 % 2));
      multiplyAdd(scores[2 * pair], query, keys[0], keys[1]);
      multiplyAdd(scores[2 * pair + 1], query, keys[2], keys[3]);
    }
  }
}

// Turns raw products into base-2 scores and hides what a row may not see. Row i of the lane sees keys
// [first[i], last[i]]; bit k of holes: key k of the tile lies in a hole. `isWhole` promises that every row
// sees every key.
template <int kKeys>
__device__ __forceinline__ void maskScores(const AttentionParams& p, float (&scores)[kKeys / 8][4],
                                           int firstKey, const int (&first)[2], const int (&last)[2],
                                           unsigned long long holes, bool isWhole) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int column = 0; column < kKeys / 8; ++column) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int offset = column * 8 + lane % 4 * 2 + i % 2, key = firstKey + offset;
      const bool isVisible =
          isWhole || (key >= first[i / 2] && key <= last[i / 2] && (holes >> offset & 1) == 0);
      scores[column][i] = isVisible ? scoreInBase2(scores[column][i], p.scale, p.softcap) : -kInfinity;
    }
  }
}

// Moves the running maximum, replaces scores by weights and rescales what was added up so far.
template <int kDim, int kKeys>
__device__ __forceinline__ void softmaxStep(RowState<kDim>& state, float (&scores)[kKeys / 8][4]) {
  float rescale[2];
  bool isMoved = false;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float largest = state.maximum[row];
#pragma unroll
    for (int column = 0; column < kKeys / 8; ++column) {
      largest = fmaxf(largest, fmaxf(scores[column][2 * row], scores[column][2 * row + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(kFullWarp, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kFullWarp, largest, 2));
    const float base =
        largest == -kInfinity ? 0.0f : largest;  // a row that sees nothing yet has weights 0, not NaN
    rescale[row] = exp2Fast(state.maximum[row] - base);
    isMoved |= largest != state.maximum[row];
    state.maximum[row] = largest;
    float sum = 0.0f;
#pragma unroll
    for (int column = 0; column < kKeys / 8; ++column) {
#pragma unroll
      for (int i = 2 * row; i < 2 * row + 2; ++i) {
        scores[column][i] = exp2Fast(scores[column][i] - base);
        sum += scores[column][i];
      }
    }
    state.sum[row] = state.sum[row] * rescale[row] + sum;
  }
  if (!__any_sync(kFullWarp, isMoved)) return;
#pragma unroll
  for (int column = 0; column < TileShape<kDim>::kColumns; ++column) {
#pragma unroll
    for (int i = 0; i < 4; ++i) state.output[column][i] *= rescale[i / 2];
  }
}

// output += weights * V for kKeys keys of a V tile that start at row `firstKey`.
template <int kDim, int kKeys>
__device__ __forceinline__ void addValues(RowState<kDim>& state, const float (&weights)[kKeys / 8][4],
                                          unsigned valueTile, int firstKey, int vHeadDim) {
  constexpr int kChunks = TileShape<kDim>::kChunks;
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int pair = 0; pair < kKeys / 16; ++pair) {
    const float (&low)[4] = weights[2 * pair];
    const float (&high)[4] = weights[2 * pair + 1];
    const unsigned fragment[4] = {packBf16(low[0], low[1]), packBf16(low[2], low[3]),
                                  packBf16(high[0], high[1]), packBf16(high[2], high[3])};
#pragma unroll
    for (int column = 0; column < TileShape<kDim>::kColumns; column += 2) {
      if (column * 8 >= vHeadDim) break;
      unsigned values[4];
      // Matrices: keys 0-7 and 8-15 of one chunk of dimensions, then of the next.
      const int row = firstKey + pair * 16 + lane % 16;
      loadMatricesTransposed(values, valueTile + tileOffset<kChunks>(row, column + lane / 16));
      multiplyAdd(state.output[column], fragment, values[0], values[1]);
      multiplyAdd(state.output[column + 1], fragment, values[2], values[3]);
    }
  }
}

// Sums of whole rows out of the lanes' own.
template <int kDim>
__device__ __forceinline__ void joinSums(RowState<kDim>& state) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    state.sum[row] += __shfl_xor_sync(kFullWarp, state.sum[row], 1);
    state.sum[row] += __shfl_xor_sync(kFullWarp, state.sum[row], 2);
  }
}
