// Penalty counts of one slot: prompt tokens set bit 31, output tokens add 1. Integer atomics: any order gives
// the same counts.
//   row  [vocab]   uint32
//   ids  [numIds]  int32, the first numPrompt from the prompt
// One thread an id.
#pragma once

constexpr int kCountThreads = 256;
constexpr unsigned kPromptBit = 0x80000000u;

struct CountTokensParams {
  unsigned* row;
  const int* ids;
  int vocab, numIds, numPrompt;
};

__global__ void countTokensKernel(const __grid_constant__ CountTokensParams p) {
  const int i = blockIdx.x * kCountThreads + threadIdx.x;
  if (i >= p.numIds) return;
  const int id = p.ids[i];
  if (id < 0 || id >= p.vocab) return;
  if (i < p.numPrompt) {
    atomicOr(p.row + id, kPromptBit);
  } else {
    atomicAdd(p.row + id, 1u);
  }
}
