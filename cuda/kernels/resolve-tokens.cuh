// Token ids the host did not know yet: a negative id becomes lastTokens[-id - 1], what the sampler left for
// that slot.
//   ids         [rows]      int32, changed in place
//   lastTokens  [numSlots]  int32
// One thread a row.
#pragma once
#include "numeric.cuh"

constexpr int kResolveThreads = 256;

struct ResolveTokensParams {
  int* ids;
  const int* lastTokens;
  int rows, numSlots;
};

__global__ void resolveTokensKernel(const __grid_constant__ ResolveTokensParams p) {
  releaseNext();
  waitForPrevious();
  const int row = blockIdx.x * kResolveThreads + threadIdx.x;
  if (row >= p.rows) return;
  const int id = p.ids[row];
  if (id < 0 && -(id + 1) < p.numSlots) p.ids[row] = p.lastTokens[-(id + 1)];
}
