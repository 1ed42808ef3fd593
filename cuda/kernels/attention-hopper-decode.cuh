// Paged decode attention in bf16 for compute capability 9.0: a persistent grid, the copy engine, and a merge
// in the same launch.
//   q, caches, pageTable, seqLens, out  as in paged-decode.cuh; pages are multiples of 16 keys
//   keyMap, valueMap   tensor maps [page, row, KV head, dim], boxes of 64 dims and up to 64 rows
//   partialOutputs     [numBlocks, 2, 16, vHeadDim]  f32, a block's first and last sequence
//   partialStats       [numBlocks, 2, 16, 2]         f32: maximum (in base 2), sum
// One block a multiprocessor. Its run of keys (attention-hopper-walk.cuh) goes through a ring of stages of 64
// keys: a warp of its own keeps the copy engine busy, across sequences too; four others score 16 keys of a
// stage each, with a softmax of their own, and join at the end of a sequence. The query heads of a KV head
// share each read.
// Bound: HBM. Bytes = 2 * sum(seqLens) * numKvHeads * headDim * 2. Aim: 95 % of the best measured read rate.
#pragma once
#include "attention-hopper-join.cuh"

constexpr int kHopperDecodeThreads = kScoringThreads + kWarpSize;
constexpr int kWarpKeys = kUnitKeys / kScoringWarps;

struct HopperDecodeParams {
  TensorMap keyMap, valueMap;
  AttentionParams p;
  int numGroups;  // of blocks, one a KV head
  int boxRows;    // 16, 32 or 64: rows of a page that one copy moves
};

template <int kDim>
struct HopperDecodeShape {
  static constexpr int kHalves = kDim / 64;
  static constexpr int kHalfBytes = kUnitKeys * kSwizzleRowBytes;  // 64 dimensions of a stage's K or V
  static constexpr int kTileBytes = kHalves * kHalfBytes;
  static constexpr int kStageBytes = 2 * kTileBytes;
  static constexpr int kMergeBytes = kScoringWarps * kHopperDecodeRows * kDim * 4;
  // In flight at once: what the memory's latency asks for. More would let the blocks of a group drift apart,
  // and memory is slower when they do not read neighbouring rows at about the same time.
  static constexpr int kWantedBytes = 96 * 1024;
  static constexpr int kStages = kWantedBytes / kStageBytes > 2 ? kWantedBytes / kStageBytes : 2;
  static constexpr int kSharedBytes = kStages * kStageBytes + kMergeBytes + kSwizzleAlignment;
  static_assert(kSharedBytes <= 226 * 1024, "fits a block, with what it declares statically");
};

template <int kStages>
struct DecodeRing {
  unsigned long long full[kStages], empty[kStages];
  unsigned holes[kStages];  // bit i: keys 16 i to 16 i + 15 of the stage are not there
};

// The copying warp.
template <int kDim>
__device__ __forceinline__ void copyUnits(const HopperDecodeParams& params, DecodeWalk walk, int kvHead,
                                          unsigned stages,
                                          DecodeRing<HopperDecodeShape<kDim>::kStages>& ring) {
  using Shape = HopperDecodeShape<kDim>;
  const AttentionParams& p = params.p;
  const int lane = threadIdx.x % kWarpSize, part = lane % kScoringWarps;
  const int numValueHalves = (p.vHeadDim + 63) / 64;
  const unsigned bytes = Shape::kTileBytes + numValueHalves * Shape::kHalfBytes;
  const bool copies = lane < kScoringWarps && lane * kWarpKeys % params.boxRows == 0;
  RingPlace place;
  for (; !walk.isDone(); walk.next(p)) {
    const int* table = p.pageTable + static_cast<long long>(p.tableRows[walk.seq]) * p.tableWidth;
    int key = walk.firstKey() + part * kWarpKeys, nextRow;
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
        const unsigned target =
            stages + place.stage * Shape::kStageBytes + lane * kWarpKeys * kSwizzleRowBytes;
#pragma unroll
        for (int half = 0; half < Shape::kHalves; ++half) {
          copyBox(target + half * Shape::kHalfBytes, &params.keyMap, half * 64, kvHead, row, source, full);
        }
#pragma unroll
        for (int half = 0; half < Shape::kHalves; ++half) {
          if (half < numValueHalves) {
            copyBox(target + Shape::kTileBytes + half * Shape::kHalfBytes, &params.valueMap, half * 64,
                    kvHead, row, source, full);
          }
        }
      }
      advance<Shape::kStages>(place);
    }
  }
}

// The packed query rows of a sequence as fragments, straight from global memory; zeros where there is none.
template <int kDim>
__device__ __forceinline__ void loadQueries(const AttentionParams& p, const SequenceQueries& queries,
                                            int kvHead, unsigned (&fragments)[kDim / 16][4]) {
  const int lane = threadIdx.x % kWarpSize;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int packed = lane / 4 + 8 * i, token = packed / p.group, head = kvHead * p.group + packed % p.group;
    const bool isThere = token < queries.numTokens;
    const auto* row =
        static_cast<const Bf16*>(p.q) + (queries.firstRow + token) * p.qStride + head * p.headDim;
#pragma unroll
    for (int column = 0; column < kDim / 8; ++column) {
      const int dim = column * 8 + lane % 4 * 2;
      const bool hasDim = isThere && dim < p.headDim;
      fragments[column / 2][i + column % 2 * 2] = hasDim ? *reinterpret_cast<const unsigned*>(row + dim) : 0u;
    }
  }
}

__device__ __forceinline__ RowKeys keysOfRows(const AttentionParams& p, const DecodeKeys& keys) {
  RowKeys rows;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    rows.last[row] = keys.queries.firstPosition + (threadIdx.x % kWarpSize / 4 + row * 8) / p.group;
    rows.first[row] = firstKeyOf(p, rows.last[row]);
  }
  rows.wholeBegin = firstKeyOf(p, keys.end - 1);
  rows.wholeEnd = keys.queries.firstPosition + 1;
  return rows;
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

// Products of the 16 packed rows with this warp's 16 keys.
template <int kDim>
__device__ __forceinline__ void scoreUnit(float (&scores)[2][4], const unsigned (&queries)[kDim / 16][4],
                                          unsigned keys) {
  float odd[2][4] = {};  // two chains of products instead of one
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    unsigned fragment[4];
    loadMatrices(fragment, (keys ^ (step % 4 * 32)) + step / 4 * HopperDecodeShape<kDim>::kHalfBytes);
    auto& sums = step % 2 == 0 ? scores : odd;
    multiplyAdd(sums[0], queries[step], fragment[0], fragment[1]);
    multiplyAdd(sums[1], queries[step], fragment[2], fragment[3]);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) scores[i / 4][i % 4] += odd[i / 4][i % 4];
}

// output += weights * V. Columns that V does not have come out as anything, and nobody reads them.
template <int kDim>
__device__ __forceinline__ void addUnit(RunningRows<kDim / 8>& rows, const float (&weights)[2][4],
                                        unsigned values) {
  unsigned fragment[1][4];
  packWeights<kWarpKeys>(weights, fragment);
#pragma unroll
  for (int column = 0; column < kDim / 8; column += 2) {
    unsigned value[4];
    loadMatricesTransposed(value,
                           (values ^ (column % 8 * 16)) + column / 8 * HopperDecodeShape<kDim>::kHalfBytes);
    multiplyAdd(rows.output[column], fragment[0], value[0], value[1]);
    multiplyAdd(rows.output[column + 1], fragment[0], value[2], value[3]);
  }
}

// Zeros this warp's V rows from `firstRow` on: nobody wrote those keys, and 0 * NaN is not 0.
template <int kDim>
__device__ __forceinline__ void clearValues(unsigned valueTile, int warp, int firstRow) {
  constexpr int kChunks = kSwizzleRowBytes / kChunkBytes;
  for (int row = firstRow; row < kWarpKeys; ++row) {
    const unsigned begin = valueTile + (warp * kWarpKeys + row) * kSwizzleRowBytes;
    for (int i = threadIdx.x % kWarpSize; i < kChunks * HopperDecodeShape<kDim>::kHalves; i += kWarpSize) {
      const unsigned address =
          begin + i / kChunks * HopperDecodeShape<kDim>::kHalfBytes + i % kChunks * kChunkBytes;
      asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(0) : "memory");
    }
  }
  fenceAsyncProxy();  // the copy engine writes here again later
  __syncwarp();
}

// One warp's share of the block's part of a sequence.
template <int kDim>
__device__ __forceinline__ void scoreSequence(const AttentionParams& p, const DecodeWalk& walk, int kvHead,
                                              unsigned stages,
                                              DecodeRing<HopperDecodeShape<kDim>::kStages>& ring,
                                              RingPlace& place, RunningRows<kDim / 8>& rows) {
  using Shape = HopperDecodeShape<kDim>;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  unsigned queries[kDim / 16][4];
  loadQueries<kDim>(p, walk.keys.queries, kvHead, queries);
  const DecodeLane at = placeLane(warp);
  const RowKeys seen = keysOfRows(p, walk.keys);
  const float scale = exponentScale(p);
  int key = walk.firstKey() + warp * kWarpKeys;
  for (int left = walk.numUnits(); left > 0; --left, key += kUnitKeys) {
    waitBarrier(sharedAddress(&ring.full[place.stage]), place.parity);
    const unsigned holes = readByLeader(sharedAddress(&ring.holes[place.stage]), lane == 0);
    if ((holes >> warp & 1) == 0) {
      const unsigned keyTile = stages + place.stage * Shape::kStageBytes,
                     valueTile = keyTile + Shape::kTileBytes;
      float scores[2][4] = {}, rescale[2];
      scoreUnit<kDim>(scores, queries, keyTile + at.key);
      if (key + kWarpKeys > walk.keys.end) clearValues<kDim>(valueTile, warp, walk.keys.end - key);
      maskKeys<kWarpKeys>(p, scores, seen, key, 0);
      weighKeys<kWarpKeys>(rows, scores, scale, rescale);
      if (__any_sync(kFullWarp, rescale[0] != 1.0f || rescale[1] != 1.0f)) rescaleOutput(rows, rescale);
      addUnit<kDim>(rows, scores, valueTile + at.value);
    }
    __syncwarp();
    if (lane == 0) arrive(sharedAddress(&ring.empty[place.stage]));
    advance<Shape::kStages>(place);
  }
}

// Grid: numGroups * numKvHeads blocks, at most kHopperDecodeMaxBlocks. Dynamic shared memory:
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
  releaseNext();
  const AttentionParams& p = params.p;
  const unsigned padding = -sharedAddress(memory) & (kSwizzleAlignment - 1);
  const unsigned stages = sharedAddress(memory) + padding;
  if (threadIdx.x == 0) {
    prefetchTensorMap(&params.keyMap);
    prefetchTensorMap(&params.valueMap);
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      initBarrier(sharedAddress(&ring.full[stage]), 1);
      initBarrier(sharedAddress(&ring.empty[stage]), kScoringWarps);
    }
    publishBarriers();
  }
  waitForPrevious();
  const DecodePlace place{static_cast<int>(blockIdx.x) / p.numKvHeads,
                          static_cast<int>(blockIdx.x) % p.numKvHeads};
  UnitShares shares;
  DecodeWalk walk = startWalk<kHopperDecodeThreads>(p, place.group, params.numGroups, shares, start, totals);
  if (threadIdx.x >= kScoringThreads) {
    copyUnits<kDim>(params, walk, place.kvHead, stages, ring);
    return;
  }
  auto* outputs = reinterpret_cast<float*>(memory + padding + Shape::kStages * Shape::kStageBytes);
  RingPlace ringPlace;
  for (; !walk.isDone(); walk.next(p)) {
    RunningRows<kDim / 8> rows;
    scoreSequence<kDim>(p, walk, place.kvHead, stages, ring, ringPlace, rows);
    finishSequence<kDim>(p, walk, place, shares, rows, outputs, join);
  }
#endif
}
