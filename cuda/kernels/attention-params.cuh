// What the paged attention kernels and their merge share: parameters, which keys a tile sees, where a split
// begins.
//
// The query heads of one KV head (the group) are packed into the rows of a tile, token-major: packed row r of
// a sequence is token r / group, head r % group of the group. A tile is tileRows packed rows of one
// (sequence, KV head). Its visible keys may be divided among splits; each split then leaves its unnormalised
// output, maximum and sum for the merge.
#pragma once
#include "numeric.cuh"

struct AttentionParams {
  const void* q;
  const char* kCache;
  const char* vCache;
  const int* pageTable;
  const int* tableRows;
  const int* queryStarts;
  const int* seqLens;
  const float* sinks;
  void* out;
  float* partialOutputs;  // [numSplits, numSeqs, maxQueryTokens, numQHeads, vHeadDim], unused with one split
  float* partialStats;    // [numSplits, numSeqs, maxQueryTokens, numQHeads, 2]: maximum (in base 2), sum
  long long qStride, outStride, kPageStrideBytes, vPageStrideBytes;
  int tableWidth, pageSize, pageShift;  // pageShift: log2 of the page size, or -1
  int numSeqs, tokensPerRow, maxQueryTokens;
  int numQHeads, numKvHeads, headDim, vHeadDim, group;
  int windowLeft;
  int tileRows, numSplits, minSplitKeys;
  float scale, softcap;
};

// Splits, and what a tile sees, begin at multiples of this many keys: whole boxes of the copy engine, and
// whole blocks of every kernel but for wide heads.
constexpr int kSplitAlignment = 128;

struct SequenceQueries {
  int firstRow;  // of q and out
  int numTokens;
  int firstPosition;  // position of the first query
};

__device__ __forceinline__ SequenceQueries queriesOf(const AttentionParams& p, int seq) {
  SequenceQueries queries;
  const int seqLen = p.seqLens[seq];
  if (p.queryStarts != nullptr) {
    queries.firstRow = p.queryStarts[seq];
    queries.numTokens = p.queryStarts[seq + 1] - queries.firstRow;
  } else {
    queries.firstRow = seq * p.tokensPerRow;
    queries.numTokens = p.tokensPerRow;
  }
  if (seqLen == 0) queries.numTokens = 0;
  queries.firstPosition = seqLen - queries.numTokens;
  return queries;
}

// Keys that a query at `position` sees: [firstKey, position].
__device__ __forceinline__ int firstKeyOf(const AttentionParams& p, int position) {
  return p.windowLeft < 0 || position < p.windowLeft ? 0 : position - p.windowLeft;
}

struct KeyRange {
  int begin, end;
};

// Keys that any row of the tile sees; begin is rounded down so that key blocks are aligned.
__device__ __forceinline__ KeyRange visibleKeys(const AttentionParams& p, const SequenceQueries& queries,
                                                int tile) {
  const int firstToken = tile * p.tileRows / p.group;
  const int lastToken = min((tile * p.tileRows + p.tileRows - 1) / p.group, queries.numTokens - 1);
  KeyRange range;
  range.begin = firstKeyOf(p, queries.firstPosition + firstToken) / kSplitAlignment * kSplitAlignment;
  range.end = queries.firstPosition + lastToken + 1;
  return range;
}

// Keys of one split, a multiple of kSplitAlignment.
__device__ __forceinline__ int splitKeys(const AttentionParams& p, const KeyRange& visible) {
  const int even = (visible.end - visible.begin + p.numSplits - 1) / p.numSplits;
  return (max(even, p.minSplitKeys) + kSplitAlignment - 1) / kSplitAlignment * kSplitAlignment;
}

__device__ __forceinline__ int numActiveSplits(const AttentionParams& p, const KeyRange& visible) {
  const int keys = splitKeys(p, visible);
  return (visible.end - visible.begin + keys - 1) / keys;
}

// Empty where the sequence is too short for this split.
__device__ __forceinline__ KeyRange rangeOfSplit(const AttentionParams& p, const KeyRange& visible,
                                                 int split) {
  const int keys = splitKeys(p, visible);
  KeyRange range;
  range.begin = min(visible.begin + split * keys, visible.end);
  range.end = min(range.begin + keys, visible.end);
  return range;
}

// Page of a key, or 0 (a hole) where nothing may be read; the row in the page goes to `rowInPage`.
__device__ __forceinline__ int pageOf(const AttentionParams& p, const int* table, int key, int end,
                                      int& rowInPage) {
  const int column = p.pageShift >= 0 ? key >> p.pageShift : key / p.pageSize;
  rowInPage = key - column * p.pageSize;
  return key < end ? max(table[column], 0) : 0;
}

// A scaled score in base 2, so that 2^score is the weight.
__device__ __forceinline__ float scoreInBase2(float product, float scale, float softcap) {
  const float score = product * scale;
  return (softcap > 0.0f ? softcap * tanhf(score / softcap) : score) * kLog2E;
}

__device__ __forceinline__ long long partialIndex(const AttentionParams& p, int split, int seq, int token,
                                                  int head) {
  const long long query = (static_cast<long long>(split) * p.numSeqs + seq) * p.maxQueryTokens + token;
  return query * p.numQHeads + head;
}

// Running softmax state of a row with its sink: the factor that turns the unnormalised output into the final
// one. A row that saw nothing gets 0.
__device__ __forceinline__ float outputScale(const AttentionParams& p, int head, float maximum, float sum) {
  if (p.sinks != nullptr) {
    const float sink = p.sinks[head] * kLog2E;
    if (maximum == -kInfinity) return 0.0f;
    const float largest = fmaxf(maximum, sink);
    const float rescale = exp2f(maximum - largest);
    return rescale / (sum * rescale + exp2f(sink - largest));
  }
  return sum > 0.0f ? 1.0f / sum : 0.0f;
}
