// Token embedding: out[r] = table[ids[r]] * scale; an id outside the vocabulary gives a zero row.
//   table  [vocab, columns]  f32 or bf16
//   ids    [rows]            int32
//   out    [rows, columns]   f32 or bf16
// One block a row, kWidth neighbouring columns a thread. Bound: HBM, bytes = rows * columns * (table + out
// element).
#pragma once
#include "numeric.cuh"

constexpr int kEmbeddingThreads = 256;

template <typename T, typename TTable>
struct EmbeddingParams {
  const TTable* table;
  const int* ids;
  T* out;
  int columns, vocab;
  float scale;
};

template <typename T, typename TTable, int kWidth>
__global__ void embeddingKernel(const __grid_constant__ EmbeddingParams<T, TTable> p) {
  releaseNext();
  waitForPrevious();
  const int id = p.ids[blockIdx.x];
  const bool isKnown = id >= 0 && id < p.vocab;
  const TTable* source = p.table + static_cast<long long>(isKnown ? id : 0) * p.columns;
  T* out = p.out + static_cast<long long>(blockIdx.x) * p.columns;
  for (int column = threadIdx.x * kWidth; column < p.columns; column += kEmbeddingThreads * kWidth) {
    float values[kWidth] = {};
    if (isKnown) loadFloats<TTable, kWidth>(source + column, values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] *= p.scale;
    storeFloats<T, kWidth>(out + column, values);
  }
}
