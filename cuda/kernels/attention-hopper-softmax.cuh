// Running softmax over tiles of kKeys scores in registers, for the kernels of compute capability 9.0. A lane
// owns two rows of its warp, l / 4 and 8 below, as matrix instructions lay them out. Scores stay unscaled, so
// that a weight is one multiply-add and one power of two; a softcap is applied before.
#pragma once
#include "attention-params.cuh"

// The lane's two rows; kColumns columns of eight output dimensions.
template <int kColumns>
struct RunningRows {
  float maximum[2] = {-kInfinity, -kInfinity};  // unscaled
  float sum[2] = {};                            // of this lane's keys only; joined at the end
  float output[kColumns][4] = {};
};

// softcap * tanh(x / softcap) of a scaled score, by the special function unit: good to 1e-6 of the softcap.
__device__ __forceinline__ float capped(float score, float scale, float softcap) {
  const float power = exp2Fast(score * scale / softcap * (2.0f * kLog2E));
  return softcap - __fdividef(2.0f * softcap, power + 1.0f);
}

// Hides keys that a row does not see: row i of the lane sees [first[i], last[i]]; bit k of `holes`: keys
// 16 k to 16 k + 15 of the tile are not there.
template <int kKeys>
__device__ __forceinline__ void hideKeys(float (&scores)[kKeys / 8][4], int firstKey, const int (&first)[2],
                                         const int (&last)[2], unsigned holes) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int column = 0; column < kKeys / 8; ++column) {
    const bool isHole = holes >> column / 2 & 1;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = firstKey + column * 8 + lane % 4 * 2 + i % 2;
      if (isHole || key < first[i / 2] || key > last[i / 2]) scores[column][i] = -kInfinity;
    }
  }
}

// Keys that the lane's rows see, [first[i], last[i]], and that every row of its warp does.
struct RowKeys {
  int first[2], last[2];
  int wholeBegin, wholeEnd;
};

// Raw products of the keys from `firstKey` on into scores that are ready for weighKeys.
template <int kKeys>
__device__ __forceinline__ void maskKeys(const AttentionParams& p, float (&scores)[kKeys / 8][4],
                                         const RowKeys& rows, int firstKey, unsigned holes) {
  if (p.softcap > 0.0f) {
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i)
      scores[i / 4][i % 4] = capped(scores[i / 4][i % 4], p.scale, p.softcap);
  }
  if (holes != 0 || firstKey < rows.wholeBegin || firstKey + kKeys > rows.wholeEnd) {
    hideKeys<kKeys>(scores, firstKey, rows.first, rows.last, holes);
  }
}

// What scores have to be multiplied with to become exponents of two, after maskKeys.
__device__ __forceinline__ float exponentScale(const AttentionParams& p) {
  return p.softcap > 0.0f ? kLog2E : p.scale * kLog2E;
}

// Moves the maximum and replaces scores by weights; `rescale` is what the output so far has to be multiplied
// with.
template <int kKeys, int kColumns>
__device__ __forceinline__ void weighKeys(RunningRows<kColumns>& rows, float (&scores)[kKeys / 8][4],
                                          float scale, float (&rescale)[2]) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float largest = rows.maximum[row];
#pragma unroll
    for (int column = 0; column < kKeys / 8; ++column) {
      largest = fmaxf(largest, fmaxf(scores[column][2 * row], scores[column][2 * row + 1]));
    }
    largest = fmaxf(largest, __shfl_xor_sync(kFullWarp, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kFullWarp, largest, 2));
    const float offset = largest == -kInfinity ? 0.0f : largest * scale;
    rescale[row] = exp2Fast(fmaf(rows.maximum[row], scale, -offset));
    rows.maximum[row] = largest;
    float sum = 0.0f;
#pragma unroll
    for (int column = 0; column < kKeys / 8; ++column) {
#pragma unroll
      for (int i = 2 * row; i < 2 * row + 2; ++i) {
        scores[column][i] = exp2Fast(fmaf(scores[column][i], scale, -offset));
        sum += scores[column][i];
      }
    }
    rows.sum[row] = rows.sum[row] * rescale[row] + sum;
  }
}

template <int kColumns>
__device__ __forceinline__ void rescaleOutput(RunningRows<kColumns>& rows, const float (&rescale)[2]) {
#pragma unroll
  for (int column = 0; column < kColumns; ++column) {
#pragma unroll
    for (int i = 0; i < 4; ++i) rows.output[column][i] *= rescale[i / 2];
  }
}

// Weights as operands of the product with V: fragment k holds keys 16 k to 16 k + 15.
template <int kKeys>
__device__ __forceinline__ void packWeights(const float (&weights)[kKeys / 8][4],
                                            unsigned (&fragments)[kKeys / 16][4]) {
#pragma unroll
  for (int column = 0; column < kKeys / 8; ++column) {
    fragments[column / 2][column % 2 * 2] = packBf16(weights[column][0], weights[column][1]);
    fragments[column / 2][column % 2 * 2 + 1] = packBf16(weights[column][2], weights[column][3]);
  }
}
