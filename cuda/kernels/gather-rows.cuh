// Row gather: out[r] = x[indices[r]]; a negative index gives a zero row. Copies words, whatever the elements
// are.
//   x, out   [?, rowWords] with strides in words  TWord
//   indices  [rows]                               int32
// One block a row. Bound: HBM, bytes = 2 * rows * row bytes.
#pragma once
#include "numeric.cuh"

constexpr int kGatherThreads = 256;

struct alignas(16) GatherWord16 {
  unsigned values[4];
};

template <typename TWord>
struct GatherRowsParams {
  const TWord* x;
  const int* indices;
  TWord* out;
  long long xStride, outStride;
  int rowWords;
};

template <typename TWord>
__global__ void gatherRowsKernel(const __grid_constant__ GatherRowsParams<TWord> p) {
  releaseNext();
  waitForPrevious();
  const int index = p.indices[blockIdx.x];
  const TWord* source = p.x + (index < 0 ? 0 : index) * p.xStride;
  TWord* out = p.out + blockIdx.x * p.outStride;
  for (int word = threadIdx.x; word < p.rowWords; word += kGatherThreads) {
    out[word] = index < 0 ? TWord{} : source[word];
  }
}
