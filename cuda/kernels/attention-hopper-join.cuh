// How the persistent decode kernel ends a sequence: the four scoring warps join their rows, and the last
// block of a sequence that several blocks share joins their parts. Parts lie in the scratch, two a block:
// slot 0 for a sequence that an earlier block began, slot 1 for one that goes on in the next.
#pragma once
#include "attention-hopper-softmax.cuh"
#include "attention-hopper-walk.cuh"
#include "hopper.cuh"

constexpr int kHopperDecodeRows = 16;
constexpr int kScoringWarps = 4;
constexpr int kScoringThreads = kScoringWarps * kWarpSize;
constexpr int kScoringBarrier = 1;  // a named one, of the scoring warps
constexpr int kHopperDecodeMaxBlocks = 1024;

// Which of the launch's blocks this is.
struct DecodePlace {
  int group, kvHead;
};

struct DecodeJoin {
  float stats[kScoringWarps][kHopperDecodeRows][2];
  bool isLast;
};

// Leaves this warp's outputs [16][kDim] and statistics for the others; rows that do not exist stay out.
template <int kDim>
__device__ __forceinline__ void publishRows(RunningRows<kDim / 8>& rows, float scale, float* outputs,
                                            DecodeJoin& join, int numRows) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    rows.sum[row] += __shfl_xor_sync(kFullWarp, rows.sum[row], 1);
    rows.sum[row] += __shfl_xor_sync(kFullWarp, rows.sum[row], 2);
    const int packed = lane / 4 + row * 8;
    if (packed >= numRows) continue;
    float* target = outputs + (warp * kHopperDecodeRows + packed) * kDim + lane % 4 * 2;
#pragma unroll
    for (int column = 0; column < kDim / 8; ++column) {
      const float pair[2] = {rows.output[column][2 * row], rows.output[column][2 * row + 1]};
      storeFloats<float, 2>(target + column * 8, pair);
    }
    if (lane % 4 == 0) {
      join.stats[warp][packed][0] = rows.maximum[row] == -kInfinity ? -kInfinity : rows.maximum[row] * scale;
      join.stats[warp][packed][1] = rows.sum[row];
    }
  }
}

// Where a packed row belongs in out.
__device__ __forceinline__ Bf16* outputRow(const AttentionParams& p, const SequenceQueries& queries,
                                           int kvHead, int packed) {
  const int token = packed / p.group, head = kvHead * p.group + packed % p.group;
  return static_cast<Bf16*>(p.out) + (queries.firstRow + token) * p.outStride + head * p.vHeadDim;
}

// Joins the warps' rows: final ones go to out, partial ones to slot `slot` of the scratch. A warp a row, four
// dimensions a lane.
template <int kDim>
__device__ __forceinline__ void joinWarps(const AttentionParams& p, const DecodeWalk& walk, int kvHead,
                                          const float* outputs, const DecodeJoin& join, int numRows,
                                          bool isFinal, int slot) {
  const int lane = threadIdx.x % kWarpSize;
  for (int row = threadIdx.x / kWarpSize; row < numRows; row += kScoringWarps) {
    float maximum = -kInfinity, sum = 0.0f, weights[kScoringWarps];
#pragma unroll
    for (int warp = 0; warp < kScoringWarps; ++warp) maximum = fmaxf(maximum, join.stats[warp][row][0]);
    const float base = maximum == -kInfinity ? 0.0f : maximum;
#pragma unroll
    for (int warp = 0; warp < kScoringWarps; ++warp) {
      weights[warp] = exp2Fast(join.stats[warp][row][0] - base);
      sum += weights[warp] * join.stats[warp][row][1];
    }
    const float scale = isFinal ? outputScale(p, kvHead * p.group + row % p.group, maximum, sum) : 1.0f;
    const int index = slot * kHopperDecodeRows + row;
    for (int dim = lane * 4; dim < p.vHeadDim; dim += 4 * kWarpSize) {
      float values[4] = {};
#pragma unroll
      for (int warp = 0; warp < kScoringWarps; ++warp) {
        float part[4];
        loadFloats<float, 4>(outputs + (warp * kHopperDecodeRows + row) * kDim + dim, part);
#pragma unroll
        for (int i = 0; i < 4; ++i) values[i] += weights[warp] * part[i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] *= scale;
      if (isFinal) {
        Bf16* out = outputRow(p, walk.keys.queries, kvHead, row) + dim;
        const float low[2] = {values[0], values[1]}, high[2] = {values[2], values[3]};
        storeFloats<Bf16, 2>(out, low);
        storeFloats<Bf16, 2>(out + 2, high);
      } else {
        storeFloats<float, 4>(p.partialOutputs + static_cast<long long>(index) * p.vHeadDim + dim, values);
      }
    }
    if (!isFinal && lane == 0) {
      const float stats[2] = {maximum, sum};
      storeFloats<float, 2>(p.partialStats + 2 * index, stats);
    }
  }
}

// Floats that another multiprocessor wrote: past this one's own cache.
__device__ __forceinline__ void loadShared(const float* source, float (&values)[2]) {
  asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];" : "=f"(values[0]), "=f"(values[1]) : "l"(source));
}
__device__ __forceinline__ void loadShared(const float* source, float (&values)[4]) {
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "l"(source));
}

// Joins the parts of a sequence that groups [first, first + numParts) left. A warp a row, a part a lane for
// the weights, four dimensions a lane for the outputs; 32 parts at a time.
template <int kDim>
__device__ __forceinline__ void joinParts(const AttentionParams& p, const DecodeWalk& walk, int kvHead,
                                          int first, int numParts, int numRows) {
  constexpr int kPieces = (kDim + 4 * kWarpSize - 1) / (4 * kWarpSize);
  const int lane = threadIdx.x % kWarpSize;
  for (int row = threadIdx.x / kWarpSize; row < numRows; row += kScoringWarps) {
    const auto indexOf = [&](int part) {
      const int block = (first + part) * p.numKvHeads + kvHead;
      return static_cast<long long>(2 * block + (part == 0 ? 1 : 0)) * kHopperDecodeRows + row;
    };
    float maximum = -kInfinity, sum = 0.0f, output[kPieces][4] = {};
    for (int begin = 0; begin < numParts; begin += kWarpSize) {
      float stats[2] = {-kInfinity, 0.0f};
      if (begin + lane < numParts) loadShared(p.partialStats + 2 * indexOf(begin + lane), stats);
      const float largest = fmaxf(maximum, warpMax(stats[0])), base = largest == -kInfinity ? 0.0f : largest;
      const float rescale = exp2Fast(maximum - base), weight = exp2Fast(stats[0] - base);
      maximum = largest;
      sum = sum * rescale + warpSum(weight * stats[1]);
#pragma unroll
      for (int i = 0; i < kPieces * 4; ++i) output[i / 4][i % 4] *= rescale;
      const int end = min(numParts - begin, kWarpSize);
#pragma unroll 8
      for (int part = 0; part < end; ++part) {
        const float partWeight = __shfl_sync(kFullWarp, weight, part);
#pragma unroll
        for (int piece = 0; piece < kPieces; ++piece) {
          const int dim = (piece * kWarpSize + lane) * 4;
          float values[4] = {};
          if (dim < p.vHeadDim)
            loadShared(p.partialOutputs + indexOf(begin + part) * p.vHeadDim + dim, values);
#pragma unroll
          for (int i = 0; i < 4; ++i) output[piece][i] += partWeight * values[i];
        }
      }
    }
    const float scale = outputScale(p, kvHead * p.group + row % p.group, maximum, sum);
    Bf16* out = outputRow(p, walk.keys.queries, kvHead, row);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int dim = (piece * kWarpSize + lane) * 4;
      const float low[2] = {output[piece][0] * scale, output[piece][1] * scale};
      const float high[2] = {output[piece][2] * scale, output[piece][3] * scale};
      if (dim >= p.vHeadDim) continue;
      storeFloats<Bf16, 2>(out + dim, low);
      storeFloats<Bf16, 2>(out + dim + 2, high);
    }
  }
}

namespace {
// How many parts of the sequence that begins in a block, and goes on behind it, have arrived. 0 between
// launches.
[[maybe_unused]] __device__ unsigned decodeArrivals[kHopperDecodeMaxBlocks];
}  // namespace

// Counts one more part; what this block wrote before is visible to whoever counts later, and the other way
// round.
__device__ __forceinline__ unsigned countArrival(unsigned* counter) {
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before + 1;
}

// Ends a sequence: writes its rows, or this block's part of them; the last block that shares it joins the
// parts.
template <int kDim>
__device__ __forceinline__ void finishSequence(const AttentionParams& p, const DecodeWalk& walk,
                                               const DecodePlace& place, const UnitShares& shares,
                                               RunningRows<kDim / 8>& rows, float* outputs,
                                               DecodeJoin& join) {
  const int numRows = walk.keys.queries.numTokens * p.group;
  const bool isFinal = walk.isWhole();
  waitNamedBarrier(kScoringBarrier, kScoringThreads);  // the sequence before is out of `outputs`
  publishRows<kDim>(rows, exponentScale(p), outputs, join, numRows);
  waitNamedBarrier(kScoringBarrier, kScoringThreads);
  joinWarps<kDim>(p, walk, place.kvHead, outputs, join, numRows, isFinal,
                  2 * blockIdx.x + (walk.unit == 0 ? 1 : 0));
  if (isFinal) return;
  const int begin = walk.position - walk.unit, first = shares.groupOf(begin);
  const int numParts = shares.groupOf(begin + walk.keys.numUnits - 1) - first + 1;
  waitNamedBarrier(kScoringBarrier, kScoringThreads);
  if (threadIdx.x == 0) {
    unsigned* counter = &decodeArrivals[first * p.numKvHeads + place.kvHead];
    join.isLast = countArrival(counter) == static_cast<unsigned>(numParts);
    if (join.isLast) *counter = 0;
  }
  waitNamedBarrier(kScoringBarrier, kScoringThreads);
  if (join.isLast) joinParts<kDim>(p, walk, place.kvHead, first, numParts, numRows);
}
