// Paged decode attention in bf16 for compute capability 9.0: a persistent grid, the copy engine, and a merge
// in the same launch.
//   q, caches, pageTable, seqLens, out  as in paged-decode.cuh; pages are multiples of 16 keys
//   keyMap, valueMap                    tensor maps [page, row, KV head, dim], boxes of 64 dims and up to 64 rows
//   partialOutputs                      [numBlocks, 2, 16, vHeadDim]  f32, a block's first and last item
//   partialStats                        [numBlocks, 2, 16, 2]         f32: maximum (in base 2), sum
// One block a multiprocessor. Its run of keys (attention-hopper-walk.cuh) goes through a ring of stages of 64
// keys: a warp of its own keeps the copy engine busy, across items too; four others score 16 keys of a stage
// each, with a softmax of their own, and join at the end of an item. The group's query heads share each read.
// Bound: HBM. Bytes = 2 * sum(seqLens) * numKvHeads * headDim * 2. Aim: 95 % of the best measured read rate.
#pragma once
#include "attention-hopper-walk.cuh"
#include "attention-hopper.cuh"
#include "attention-tile.cuh"

constexpr int kHopperDecodeRows = 16;
constexpr int kScoringWarps = 4;
constexpr int kScoringThreads = kScoringWarps * kWarpSize;
constexpr int kHopperDecodeThreads = kScoringThreads + kWarpSize;
constexpr int kHopperDecodeMaxBlocks = 1024;
constexpr int kWarpKeys = kUnitKeys / kScoringWarps;
constexpr int kScoringBarrier = 1;  // a named one, of the scoring warps

struct HopperDecodeParams {
  TensorMap keyMap, valueMap;
  AttentionParams p;
  int boxRows;  // 16, 32 or 64: rows of a page that one copy moves
};

template <int kDim>
struct HopperDecodeShape {
  static constexpr int kHalves = kDim / 64;
  static constexpr int kHalfBytes = kUnitKeys * kSwizzleRowBytes;  // 64 dimensions of a stage's K or V
  static constexpr int kTileBytes = kHalves * kHalfBytes;
  static constexpr int kStageBytes = 2 * kTileBytes;
  static constexpr int kMergeBytes = kScoringWarps * kHopperDecodeRows * kDim * 4;
  // What a block can have, less what it declares statically and the alignment of the stages.
  static constexpr int kBudget = 227 * 1024 - 2048 - kSwizzleAlignment - kMergeBytes;
  static constexpr int kStages = kBudget / kStageBytes < 8 ? kBudget / kStageBytes : 8;
  static constexpr int kSharedBytes = kStages * kStageBytes + kMergeBytes + kSwizzleAlignment;
  static_assert(kStages >= 2, "one stage to copy into while another is read");
};

template <int kStages>
struct DecodeRing {
  unsigned long long full[kStages], empty[kStages];
  unsigned holes[kStages];  // bit i: keys 16 i to 16 i + 15 of the stage are not there
};

// The copying warp.
template <int kDim>
__device__ __forceinline__ void copyUnits(const HopperDecodeParams& params, DecodeWalk walk, unsigned stages,
                                          DecodeRing<HopperDecodeShape<kDim>::kStages>& ring) {
  using Shape = HopperDecodeShape<kDim>;
  const AttentionParams& p = params.p;
  const int lane = threadIdx.x % kWarpSize, group = lane % kScoringWarps;
  const int numKeyHalves = (p.headDim + 63) / 64, numValueHalves = (p.vHeadDim + 63) / 64;
  const unsigned bytes = (numKeyHalves + numValueHalves) * Shape::kHalfBytes;
  const bool copies = lane < kScoringWarps && lane * kWarpKeys % params.boxRows == 0;
  RingPlace place;
  for (; !walk.isDone(); walk.next(p)) {
    const int* table = p.pageTable + static_cast<long long>(p.tableRows[walk.seq]) * p.tableWidth;
    int key = walk.firstKey() + group * kWarpKeys, nextRow;
    int next = pageOf(p, table, key, walk.keys.end, nextRow);
    for (int left = walk.numUnits(); left > 0; --left) {
      const int page = next, row = nextRow;
      const unsigned holes = __ballot_sync(kFullWarp, page == 0) & ((1u << kScoringWarps) - 1);
      key += kUnitKeys;
      if (left > 1) next = pageOf(p, table, key, walk.keys.end, nextRow);  // its latency hides in the wait
      waitBarrier(sharedAddress(&ring.empty[place.stage]), place.parity ^ 1);
      const unsigned full = sharedAddress(&ring.full[place.stage]);
      if (lane == 0) {
        ring.holes[place.stage] = holes;
        arriveExpecting(full, bytes);
      }
      __syncwarp();
      if (copies) {
        const int source = page == 0 ? -1 : page;  // outside the tensor: zeros, nothing is read
        const unsigned target = stages + place.stage * Shape::kStageBytes + lane * kWarpKeys * kSwizzleRowBytes;
        for (int half = 0; half < numKeyHalves; ++half) {
          copyBox(target + half * Shape::kHalfBytes, &params.keyMap, half * 64, walk.kvHead, row, source, full);
        }
        for (int half = 0; half < numValueHalves; ++half) {
          copyBox(target + Shape::kTileBytes + half * Shape::kHalfBytes, &params.valueMap, half * 64,
                  walk.kvHead, row, source, full);
        }
      }
      advance<Shape::kStages>(place);
    }
  }
}

// The item's packed query rows as fragments, straight from global memory; zeros where there is no row.
template <int kDim>
__device__ __forceinline__ void loadQueries(const AttentionParams& p, const DecodeWalk& walk,
                                            unsigned (&fragments)[kDim / 16][4]) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int packed = lane / 4 + 8 * i, token = packed / p.group;
    const int head = walk.kvHead * p.group + packed % p.group;
    const bool isThere = token < walk.keys.queries.numTokens;
    const auto* row = static_cast<const Bf16*>(p.q) + (walk.keys.queries.firstRow + token) * p.qStride +
                      head * p.headDim;
#pragma unroll
    for (int column = 0; column < kDim / 8; ++column) {
      const int dim = column * 8 + lane % 4 * 2;
      const bool hasDim = isThere && dim < p.headDim;
      fragments[column / 2][i + column % 2 * 2] = hasDim ? *reinterpret_cast<const unsigned*>(row + dim) : 0u;
    }
  }
}

// Where this lane's matrix loads begin in a swizzled tile of 64 rows: later chunks differ by an exclusive or.
struct DecodeLane {
  unsigned key, value;
};
__device__ __forceinline__ DecodeLane placeLane(int warp) {
  const int lane = threadIdx.x % kWarpSize;
  const int keyRow = warp * kWarpKeys + lane % 8 + lane / 16 * 8, valueRow = warp * kWarpKeys + lane % 16;
  return DecodeLane{static_cast<unsigned>(keyRow * kSwizzleRowBytes + ((lane / 8 % 2) ^ (keyRow & 7)) * 16),
                    static_cast<unsigned>(valueRow * kSwizzleRowBytes + ((lane / 16) ^ (valueRow & 7)) * 16)};
}

// Scores of the 16 packed rows against this warp's 16 keys.
template <int kDim>
__device__ __forceinline__ void scoreUnit(float (&scores)[2][4], const unsigned (&queries)[kDim / 16][4],
                                          unsigned keys, int headDim) {
  float odd[2][4] = {};  // two chains of products instead of one
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    if (step * 16 >= headDim) break;
    unsigned fragment[4];
    loadMatrices(fragment, (keys ^ (step % 4 * 32)) + step / 4 * HopperDecodeShape<kDim>::kHalfBytes);
    auto& sums = step % 2 == 0 ? scores : odd;
    multiplyAdd(sums[0], queries[step], fragment[0], fragment[1]);
    multiplyAdd(sums[1], queries[step], fragment[2], fragment[3]);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) scores[i / 4][i % 4] += odd[i / 4][i % 4];
}

template <int kDim>
__device__ __forceinline__ void addUnit(RowState<kDim>& state, const float (&weights)[2][4], unsigned values,
                                        int vHeadDim) {
  const unsigned fragment[4] = {packBf16(weights[0][0], weights[0][1]), packBf16(weights[0][2], weights[0][3]),
                                packBf16(weights[1][0], weights[1][1]), packBf16(weights[1][2], weights[1][3])};
#pragma unroll
  for (int column = 0; column < kDim / 8; column += 2) {
    if (column * 8 >= vHeadDim) break;
    unsigned value[4];
    loadMatricesTransposed(value,
                           (values ^ (column % 8 * 16)) + column / 8 * HopperDecodeShape<kDim>::kHalfBytes);
    multiplyAdd(state.output[column], fragment, value[0], value[1]);
    multiplyAdd(state.output[column + 1], fragment, value[2], value[3]);
  }
}

// Zeros this warp's V rows from `firstRow` on: nobody wrote those keys, and 0 * NaN is not 0.
template <int kDim>
__device__ __forceinline__ void clearValues(char* valueTile, int warp, int firstRow) {
  constexpr int kChunks = kSwizzleRowBytes / kChunkBytes;
  const int numRows = kWarpKeys - firstRow;
  for (int i = threadIdx.x % kWarpSize; i < numRows * kChunks * HopperDecodeShape<kDim>::kHalves;
       i += kWarpSize) {
    const int half = i / (numRows * kChunks), row = warp * kWarpKeys + firstRow + i / kChunks % numRows;
    char* chunk = valueTile + half * HopperDecodeShape<kDim>::kHalfBytes + row * kSwizzleRowBytes +
                  i % kChunks * kChunkBytes;
    *reinterpret_cast<Pack<unsigned, 4>*>(chunk) = Pack<unsigned, 4>{};
  }
  fenceAsyncProxy();  // the copy engine writes here again later
  __syncwarp();
}

// One warp's share of an item.
template <int kDim>
__device__ __forceinline__ void scoreItem(const AttentionParams& p, const DecodeWalk& walk, char* stages,
                                          DecodeRing<HopperDecodeShape<kDim>::kStages>& ring,
                                          RingPlace& place, RowState<kDim>& state) {
  using Shape = HopperDecodeShape<kDim>;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  unsigned queries[kDim / 16][4];
  loadQueries<kDim>(p, walk, queries);
  const DecodeLane at = placeLane(warp);
  int first[2], last[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    last[row] = walk.keys.queries.firstPosition + (lane / 4 + row * 8) / p.group;
    first[row] = firstKeyOf(p, last[row]);
  }
  const int wholeBegin = firstKeyOf(p, walk.keys.end - 1), wholeEnd = walk.keys.queries.firstPosition + 1;
  int key = walk.firstKey() + warp * kWarpKeys;
  for (int left = walk.numUnits(); left > 0; --left, key += kUnitKeys) {
    waitBarrier(sharedAddress(&ring.full[place.stage]), place.parity);
    if ((ring.holes[place.stage] >> warp & 1) == 0) {
      char* keyTile = stages + place.stage * Shape::kStageBytes;
      if (key + kWarpKeys > walk.keys.end) {
        clearValues<kDim>(keyTile + Shape::kTileBytes, warp, walk.keys.end - key);
      }
      const unsigned tile = sharedAddress(keyTile);
      float scores[2][4] = {};
      scoreUnit<kDim>(scores, queries, tile + at.key, p.headDim);
      maskScores<kWarpKeys>(p, scores, key, first, last, 0, key >= wholeBegin && key + kWarpKeys <= wholeEnd);
      softmaxStep<kDim, kWarpKeys>(state, scores);
      addUnit<kDim>(state, scores, tile + Shape::kTileBytes + at.value, p.vHeadDim);
    }
    __syncwarp();
    if (lane == 0) arrive(sharedAddress(&ring.empty[place.stage]));
    advance<Shape::kStages>(place);
  }
  joinSums(state);
}

// ---- joining ------------------------------------------------------------------------------------------

struct DecodeJoin {
  float stats[kScoringWarps][kHopperDecodeRows][2];
  bool isLast;
};

// Leaves this warp's outputs [16][kDim] and statistics for the others; rows that do not exist stay out.
template <int kDim>
__device__ __forceinline__ void publishRows(const RowState<kDim>& state, float* outputs, DecodeJoin& join,
                                            int numRows) {
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int packed = lane / 4 + row * 8;
    if (packed >= numRows) continue;
    float* target = outputs + (warp * kHopperDecodeRows + packed) * kDim + lane % 4 * 2;
#pragma unroll
    for (int column = 0; column < kDim / 8; ++column) {
      const float pair[2] = {state.output[column][2 * row], state.output[column][2 * row + 1]};
      storeFloats<float, 2>(target + column * 8, pair);
    }
    if (lane % 4 == 0) {
      join.stats[warp][packed][0] = state.maximum[row];
      join.stats[warp][packed][1] = state.sum[row];
    }
  }
}

// Where a packed row of the item belongs in out.
__device__ __forceinline__ Bf16* outputRow(const AttentionParams& p, const DecodeWalk& walk, int packed) {
  const int token = packed / p.group, head = walk.kvHead * p.group + packed % p.group;
  return static_cast<Bf16*>(p.out) + (walk.keys.queries.firstRow + token) * p.outStride + head * p.vHeadDim;
}

// Joins the warps' rows: final ones go to out, partial ones to slot `slot` of the scratch. A warp a row.
template <int kDim>
__device__ __forceinline__ void joinWarps(const AttentionParams& p, const DecodeWalk& walk,
                                          const float* outputs, const DecodeJoin& join, int numRows,
                                          bool isFinal, int slot) {
  const int lane = threadIdx.x % kWarpSize;
  for (int row = threadIdx.x / kWarpSize; row < numRows; row += kScoringWarps) {
    float maximum = -kInfinity, sum = 0.0f, weights[kScoringWarps];
#pragma unroll
    for (int warp = 0; warp < kScoringWarps; ++warp) maximum = fmaxf(maximum, join.stats[warp][row][0]);
#pragma unroll
    for (int warp = 0; warp < kScoringWarps; ++warp) {
      weights[warp] = maximum == -kInfinity ? 0.0f : exp2f(join.stats[warp][row][0] - maximum);
      sum += weights[warp] * join.stats[warp][row][1];
    }
    const int head = walk.kvHead * p.group + row % p.group;
    const float scale = isFinal ? outputScale(p, head, maximum, sum) : 1.0f;
    const int index = slot * kHopperDecodeRows + row;
    for (int dim = lane * 2; dim < p.vHeadDim; dim += 2 * kWarpSize) {
      float values[2] = {};
#pragma unroll
      for (int warp = 0; warp < kScoringWarps; ++warp) {
        float part[2];
        loadFloats<float, 2>(outputs + (warp * kHopperDecodeRows + row) * kDim + dim, part);
        values[0] += weights[warp] * part[0];
        values[1] += weights[warp] * part[1];
      }
      values[0] *= scale;
      values[1] *= scale;
      if (isFinal) {
        storeFloats<Bf16, 2>(outputRow(p, walk, row) + dim, values);
      } else {
        storeFloats<float, 2>(p.partialOutputs + static_cast<long long>(index) * p.vHeadDim + dim, values);
      }
    }
    if (!isFinal && lane == 0) {
      const float stats[2] = {maximum, sum};
      storeFloats<float, 2>(p.partialStats + 2 * index, stats);
    }
  }
}

// Two floats that another multiprocessor wrote: past this one's own cache.
__device__ __forceinline__ void loadShared(const float* source, float (&values)[2]) {
  asm volatile("ld.global.cg.v2.f32 {%0, %1}, [%2];" : "=f"(values[0]), "=f"(values[1]) : "l"(source));
}

// Joins the parts that blocks [first, first + numParts) left of an item: the first one in its slot 1, the
// others in their slot 0. A warp a row.
template <int kDim>
__device__ __forceinline__ void joinParts(const AttentionParams& p, const DecodeWalk& walk, int first,
                                          int numParts, int numRows) {
  const int lane = threadIdx.x % kWarpSize;
  for (int row = threadIdx.x / kWarpSize; row < numRows; row += kScoringWarps) {
    const auto indexOf = [&](int part) {
      return (2 * (first + part) + (part == 0 ? 1 : 0)) * kHopperDecodeRows + row;
    };
    float maximum = -kInfinity, sum = 0.0f, output[kDim / kWarpSize] = {};
    for (int part = lane; part < numParts; part += kWarpSize) {
      float stats[2];
      loadShared(p.partialStats + 2 * indexOf(part), stats);
      maximum = fmaxf(maximum, stats[0]);
    }
    maximum = warpMax(maximum);
    const float base = maximum == -kInfinity ? 0.0f : maximum;
#pragma unroll 4
    for (int part = 0; part < numParts; ++part) {
      float stats[2];
      loadShared(p.partialStats + 2 * indexOf(part), stats);
      const float weight = exp2f(stats[0] - base);
      sum += weight * stats[1];
      const float* values = p.partialOutputs + static_cast<long long>(indexOf(part)) * p.vHeadDim;
#pragma unroll
      for (int i = 0; i < kDim / kWarpSize; i += 2) {
        const int dim = i * kWarpSize + lane * 2;
        float pair[2] = {};
        if (dim < p.vHeadDim) loadShared(values + dim, pair);
        output[i] += weight * pair[0];
        output[i + 1] += weight * pair[1];
      }
    }
    const float scale = outputScale(p, walk.kvHead * p.group + row % p.group, maximum, sum);
    Bf16* out = outputRow(p, walk, row);
#pragma unroll
    for (int i = 0; i < kDim / kWarpSize; i += 2) {
      const int dim = i * kWarpSize + lane * 2;
      const float pair[2] = {output[i] * scale, output[i + 1] * scale};
      if (dim < p.vHeadDim) storeFloats<Bf16, 2>(out + dim, pair);
    }
  }
}

namespace {
// How many parts of the item that begins in a block, and goes on behind it, have arrived. 0 between launches.
[[maybe_unused]] __device__ unsigned decodeArrivals[kHopperDecodeMaxBlocks];
}  // namespace

// Ends an item: writes its rows, or this block's part of them; the last block of a shared item joins its parts.
template <int kDim>
__device__ __forceinline__ void finishItem(const AttentionParams& p, const DecodeWalk& walk,
                                           const UnitShares& shares, const RowState<kDim>& state,
                                           float* outputs, DecodeJoin& join) {
  const int numRows = walk.keys.queries.numTokens * p.group;
  const bool isFinal = walk.isWholeItem();
  waitNamedBarrier(kScoringBarrier, kScoringThreads);  // the item before is out of `outputs`
  publishRows<kDim>(state, outputs, join, numRows);
  waitNamedBarrier(kScoringBarrier, kScoringThreads);
  joinWarps<kDim>(p, walk, outputs, join, numRows, isFinal, 2 * blockIdx.x + (walk.unit == 0 ? 1 : 0));
  if (isFinal) return;
  const int begin = walk.position - walk.unit;
  const int first = shares.blockOf(begin), numParts = shares.blockOf(begin + walk.keys.numUnits - 1) - first + 1;
  __threadfence();
  waitNamedBarrier(kScoringBarrier, kScoringThreads);
  if (threadIdx.x == 0) {
    join.isLast = atomicAdd(&decodeArrivals[first], 1u) + 1 == static_cast<unsigned>(numParts);
    if (join.isLast) decodeArrivals[first] = 0;
    __threadfence();
  }
  waitNamedBarrier(kScoringBarrier, kScoringThreads);
  if (join.isLast) joinParts<kDim>(p, walk, first, numParts, numRows);
}

// Grid: any number of blocks up to kHopperDecodeMaxBlocks. Dynamic shared memory:
// HopperDecodeShape<kDim>::kSharedBytes.
template <int kDim>
__global__ void __launch_bounds__(kHopperDecodeThreads, 1)
    hopperDecodeKernel(const __grid_constant__ HopperDecodeParams params) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = HopperDecodeShape<kDim>;
  extern __shared__ __align__(128) char memory[];
  __shared__ DecodeRing<Shape::kStages> ring;
  __shared__ DecodeJoin join;
  __shared__ DecodeStart start;
  __shared__ int totals[kHopperDecodeThreads / kWarpSize];
  const AttentionParams& p = params.p;
  char* stages = memory + (-sharedAddress(memory) & (kSwizzleAlignment - 1));
  if (threadIdx.x == 0) {
    prefetchTensorMap(&params.keyMap);
    prefetchTensorMap(&params.valueMap);
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      initBarrier(sharedAddress(&ring.full[stage]), 1);
      initBarrier(sharedAddress(&ring.empty[stage]), kScoringWarps);
    }
    publishBarriers();
  }
  UnitShares shares;
  DecodeWalk walk = startWalk<kHopperDecodeThreads>(p, shares, start, totals);  // synchronises the block
  if (threadIdx.x >= kScoringThreads) {
    copyUnits<kDim>(params, walk, sharedAddress(stages), ring);
    return;
  }
  auto* outputs = reinterpret_cast<float*>(stages + Shape::kStages * Shape::kStageBytes);
  RingPlace place;
  for (; !walk.isDone(); walk.next(p)) {
    RowState<kDim> state;
    scoreItem<kDim>(p, walk, stages, ring, place, state);
    finishItem<kDim>(p, walk, shares, state, outputs, join);
  }
#endif
}
