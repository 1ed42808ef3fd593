// Paged attention of many queries in bf16 for compute capability 9.0: causal, over a cached prefix and the
// new tokens alike, both read from the pages.
//   q, caches, pageTable, seqLens, out  as in paged-decode.cuh; pages are multiples of 16 keys
//   keyMap, valueMap  tensor maps [page, row, KV head, dim], boxes of 64 dims and up to 128 rows
// One block a (tile of 128 packed query rows, KV head, split), longest tiles first. A warp copies blocks of
// 64 to 128 keys into a ring of stages; two warpgroups take 64 rows each. A warpgroup has the scores of a
// block and the output of the one before in the tensor cores at once, and weighs scores while the output is
// added up; the two take turns with the tensor cores, but for the widest heads.
// Bound: tensor cores, 4 * headDim operations a (row, key). Aim: 75 % of the measured rate of large products.
#pragma once
#include "attention-hopper-softmax.cuh"
#include "warpgroup-products.cuh"

constexpr int kHopperPrefillRows = 128;
constexpr int kWarpgroupRows = 64;
constexpr int kWarpgroups = 2;  // that compute
constexpr int kHopperPrefillThreads = (1 + kWarpgroups) * kWarpgroupThreads;
constexpr int kHopperPrefillStages = 2;
constexpr int kCopyingRegisters = 24, kComputingRegisters = 240;  // 65,536 in all, in steps of 8
constexpr int kRowsBarrier = 1;  // named barriers: of a warpgroup (1, 2), and its turn (3, 4)
constexpr int kTurnBarrier = 3;

struct HopperPrefillParams {
  TensorMap keyMap, valueMap;
  AttentionParams p;
  int boxRows;  // 16, 32, 64 or 128: rows of a page that one copy moves; divides the keys of a block
};

// Padded dimension of values in the kernel of `dim`, which is the larger of the two. Keys of 192 with values
// of 128 are common enough for a kernel that leaves out a third of the output.
__host__ __device__ constexpr int hopperPrefillValueDim(int dim, int vHeadDim) {
  return dim == 192 && vHeadDim <= 128 ? 128 : dim;
}

// Keys of a block. Two stages of 112 keys of 192 and of 80 keys of 256 would fit beside Q too, but their
// blocks begin at any sixteenth key: boxes of 32 and 64 rows are worth more than 16 further keys.
__host__ __device__ constexpr int hopperPrefillKeys(int dim, int valueDim) {
  return valueDim <= 128 ? 128 : dim <= 192 ? 96 : 64;
}

// Tiles lie in slices of 64 dimensions.
template <int kDim, int kValueDim = kDim>
struct HopperPrefillShape {
  static constexpr int kKeys = hopperPrefillKeys(kDim, kValueDim);
  static constexpr int kKeySteps = kDim / 16, kValueColumns = kValueDim / 8;
  static constexpr int kKeySlices = kDim / 64, kValueSlices = kValueDim / 64;
  static constexpr int kQuerySliceBytes = kHopperPrefillRows * kSwizzleRowBytes;
  static constexpr int kSliceBytes = kKeys * kSwizzleRowBytes;
  static constexpr int kQueryBytes = kKeySlices * kQuerySliceBytes;
  static constexpr int kKeyTileBytes = kKeySlices * kSliceBytes;
  static constexpr int kValueTileBytes = kValueSlices * kSliceBytes;
  static constexpr int kSharedBytes =
      kQueryBytes + kHopperPrefillStages * (kKeyTileBytes + kValueTileBytes) + kSwizzleAlignment;
  static constexpr bool kIsWide = kDim > 128;      // registers run short, so that some things are done anew
  static constexpr bool kTakesTurns = kDim < 256;  // the widest heads are faster without
  static_assert(kKeys % 16 == 0 && kKeys <= 128, "holes are marked, and copied, by groups of 16 keys");
};

struct PrefillRing {
  unsigned long long keysFull[kHopperPrefillStages], keysEmpty[kHopperPrefillStages];
  unsigned long long valuesFull[kHopperPrefillStages], valuesEmpty[kHopperPrefillStages];
  unsigned holes[kHopperPrefillStages];  // bit i: keys 16 i to 16 i + 15 of the block are not there
};

// What the block works on.
struct PrefillTile {
  SequenceQueries queries;
  KeyRange range;
  const int* table;
  int seq, kvHead, firstRow;  // firstRow: packed
};

// The copying warp.
template <typename Shape>
__device__ __forceinline__ void copyKeyBlocks(const HopperPrefillParams& params, const PrefillTile& tile,
                                              unsigned keyTiles, PrefillRing& ring) {
  constexpr int kGroups = Shape::kKeys / 16;
  const AttentionParams& p = params.p;
  const int lane = threadIdx.x % kWarpSize, group = lane % kGroups;
  const int numValueSlices = (p.vHeadDim + 63) / 64;
  const bool copies = lane < kGroups && lane * 16 % params.boxRows == 0;
  const unsigned valueTiles = keyTiles + kHopperPrefillStages * Shape::kKeyTileBytes;
  const unsigned offset = group * 16 * kSwizzleRowBytes;
  int key = tile.range.begin + group * 16, nextRow;
  int next = pageOf(p, tile.table, key, tile.range.end, nextRow);
  RingPlace place;
  for (; key - group * 16 < tile.range.end; advance<kHopperPrefillStages>(place)) {
    const int page = next == 0 ? -1 : next, row = nextRow;  // outside the tensor: zeros, nothing is read
    const unsigned holes = __ballot_sync(kFullWarp, next == 0) & ((1u << kGroups) - 1);
    key += Shape::kKeys;
    next = pageOf(p, tile.table, key, tile.range.end, nextRow);
    const unsigned keysFull = sharedAddress(&ring.keysFull[place.stage]);
    waitBarrier(sharedAddress(&ring.keysEmpty[place.stage]), place.parity ^ 1);
    if (lane == 0) {
      ring.holes[place.stage] = holes;
      arriveExpecting(keysFull, Shape::kKeyTileBytes);
    }
    __syncwarp();
    for (int slice = 0; copies && slice < Shape::kKeySlices; ++slice) {
      copyBox(keyTiles + place.stage * Shape::kKeyTileBytes + slice * Shape::kSliceBytes + offset,
              &params.keyMap, slice * 64, tile.kvHead, row, page, keysFull);
    }
    const unsigned valuesFull = sharedAddress(&ring.valuesFull[place.stage]);
    waitBarrier(sharedAddress(&ring.valuesEmpty[place.stage]), place.parity ^ 1);
    if (lane == 0) arriveExpecting(valuesFull, numValueSlices * Shape::kSliceBytes);
    __syncwarp();
    for (int slice = 0; copies && slice < numValueSlices; ++slice) {
      copyBox(valueTiles + place.stage * Shape::kValueTileBytes + slice * Shape::kSliceBytes + offset,
              &params.valueMap, slice * 64, tile.kvHead, row, page, valuesFull);
    }
  }
}

// The warpgroup's packed query rows, swizzled as the tensor cores read them.
template <typename Shape>
__device__ __forceinline__ void copyWarpgroupQueries(const AttentionParams& p, const PrefillTile& tile,
                                                     unsigned target, int warpgroup) {
  constexpr int kChunks = Shape::kKeySlices * 8;
  constexpr int kUnroll = Shape::kIsWide ? 8 : 1;
  const auto* q = static_cast<const Bf16*>(p.q);
#pragma unroll kUnroll
  for (int i = threadIdx.x % kWarpgroupThreads; i < kWarpgroupRows * kChunks; i += kWarpgroupThreads) {
    const int row = warpgroup * kWarpgroupRows + i / kChunks, chunk = i % kChunks;
    const int packed = tile.firstRow + row, token = packed / p.group;
    const int head = tile.kvHead * p.group + packed % p.group;
    const bool isThere = token < tile.queries.numTokens && chunk * kChunkElements < p.headDim;
    const long long source =
        (tile.queries.firstRow + token) * p.qStride + head * p.headDim + chunk * kChunkElements;
    copyChunkAsync(target + chunk / 8 * Shape::kQuerySliceBytes + row * kSwizzleRowBytes +
                       ((chunk % 8) ^ (row & 7)) * kChunkBytes,
                   q + (isThere ? source : 0), isThere);
  }
  commitCopies();
  waitCopies<0>();
  fenceAsyncProxy();
  waitNamedBarrier(kRowsBarrier + warpgroup, kWarpgroupThreads);
}

// One warpgroup's view of the tile.
struct PrefillWarpgroup {
  int warpgroup;
  bool takesTurns;
  RowKeys rows;
  unsigned queries, keyTiles, valueTiles;
};

// This thread's warpgroup, as kept, or found anew where keeping it would take a register too many.
template <typename Shape>
__device__ __forceinline__ int warpgroupOf(int kept) {
  return Shape::kIsWide ? static_cast<int>(threadIdx.x) / kWarpgroupThreads - 1 : kept;
}

template <typename Shape>
__device__ __forceinline__ PrefillWarpgroup placeWarpgroup(const AttentionParams& p, const PrefillTile& tile,
                                                           unsigned shared, int warpgroup,
                                                           bool takesTurns) {
  PrefillWarpgroup view;
  view.warpgroup = warpgroup;
  view.takesTurns = takesTurns;
  const int warpRow =
      tile.firstRow + threadIdx.x % kWarpgroupThreads / kWarpSize * 16 + warpgroup * kWarpgroupRows;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int position =
        tile.queries.firstPosition + (warpRow + threadIdx.x % kWarpSize / 4 + row * 8) / p.group;
    view.rows.first[row] = firstKeyOf(p, position);
    view.rows.last[row] = min(position, tile.range.end - 1);
  }
  view.rows.wholeEnd = min(tile.queries.firstPosition + warpRow / p.group + 1, tile.range.end);
  view.rows.wholeBegin = firstKeyOf(p, tile.queries.firstPosition + (warpRow + 15) / p.group);
  view.queries = shared + warpgroup * kWarpgroupRows * kSwizzleRowBytes;
  view.keyTiles = shared + Shape::kQueryBytes;
  view.valueTiles = view.keyTiles + kHopperPrefillStages * Shape::kKeyTileBytes;
  return view;
}

// Starts scores = Q K^T of one stage.
template <typename Shape>
__device__ __forceinline__ void startScores(float (&scores)[Shape::kKeys / 8][4],
                                            const PrefillWarpgroup& view, int stage) {
  const unsigned long long queries = describeTile(view.queries, 0);
  const unsigned long long keys = describeTile(view.keyTiles + stage * Shape::kKeyTileBytes, 0);
#pragma unroll
  for (int step = 0; step < Shape::kKeySteps; ++step) {
    const unsigned queryOffset = (step / 4 * Shape::kQuerySliceBytes + step % 4 * 32) >> 4;
    const unsigned keyOffset = (step / 4 * Shape::kSliceBytes + step % 4 * 32) >> 4;
    multiplyTransposed(scores, queries + queryOffset, keys + keyOffset, step > 0);
  }
  commitProducts();
}

// Starts output += weights * V of one stage.
template <typename Shape>
__device__ __forceinline__ void startOutput(RunningRows<Shape::kValueColumns>& rows,
                                            const unsigned (&weights)[Shape::kKeys / 16][4],
                                            const PrefillWarpgroup& view, int stage) {
  const unsigned long long values =
      describeTile(view.valueTiles + stage * Shape::kValueTileBytes, Shape::kSliceBytes);
#pragma unroll
  for (int step = 0; step < Shape::kKeys / 16; ++step) {
    multiplyAddRows(rows.output, weights[step], values + (step * 16 * kSwizzleRowBytes >> 4));
  }
  commitProducts();
}

// Zeros V rows from `firstRow` on: nobody wrote those keys, and 0 * NaN is not 0. Both warpgroups do it, each
// before its own use.
template <typename Shape>
__device__ __forceinline__ void clearRows(const PrefillWarpgroup& view, int stage, int firstRow) {
  constexpr int kChunks = kSwizzleRowBytes / kChunkBytes;
  const int numRows = Shape::kKeys - firstRow;
  for (int i = threadIdx.x % kWarpgroupThreads; i < numRows * kChunks * Shape::kValueSlices;
       i += kWarpgroupThreads) {
    const unsigned address = view.valueTiles + stage * Shape::kValueTileBytes +
                             i / (numRows * kChunks) * Shape::kSliceBytes + firstRow * kSwizzleRowBytes +
                             i % (numRows * kChunks) * kChunkBytes;
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(address), "r"(0) : "memory");
  }
  fenceAsyncProxy();
  waitNamedBarrier(kRowsBarrier + warpgroupOf<Shape>(view.warpgroup), kWarpgroupThreads);
}

// A computing warpgroup: its rows over all keys of the tile. Every warp releases a stage for itself.
template <typename Shape>
__device__ __forceinline__ void attendRows(const AttentionParams& p, const PrefillTile& tile,
                                           const PrefillWarpgroup& view, PrefillRing& ring,
                                           RunningRows<Shape::kValueColumns>& rows) {
  constexpr int kKeys = Shape::kKeys;
  const float scale = exponentScale(p);
  const bool leads = threadIdx.x % kWarpSize == 0;
  const int seqLen = tile.queries.firstPosition + tile.queries.numTokens;
  float scores[kKeys / 8][4], rescale[2];
  unsigned weights[kKeys / 16][4];
  RingPlace keys, values;
  const int own = kTurnBarrier + warpgroupOf<Shape>(view.warpgroup);
  const auto takeTurn = [&] { if (view.takesTurns) waitNamedBarrier(own, 2 * kWarpgroupThreads); };
  const auto passTurn = [&](int firstKey) {  // after the last block nobody waits for the second one
    const int warpgroup = warpgroupOf<Shape>(view.warpgroup), other = kTurnBarrier + 1 - warpgroup;
    const bool isAwaited = warpgroup == 0 || firstKey + kKeys < tile.range.end;
    if (view.takesTurns && isAwaited) arriveNamedBarrier(other, 2 * kWarpgroupThreads);
  };
  const auto waitValues = [&](int firstKey) {
    waitBarrier(sharedAddress(&ring.valuesFull[values.stage]), values.parity);
    if (firstKey + kKeys > seqLen) clearRows<Shape>(view, values.stage, seqLen - firstKey);
  };
  const auto waitKeys = [&] {
    waitBarrier(sharedAddress(&ring.keysFull[keys.stage]), keys.parity);
    return readByLeader(sharedAddress(&ring.holes[keys.stage]), leads);
  };
  const auto releaseKeys = [&] {
    __syncwarp();
    if (leads) arrive(sharedAddress(&ring.keysEmpty[keys.stage]));
    advance<kHopperPrefillStages>(keys);
  };

  unsigned holes = waitKeys();
  takeTurn();
  beginProducts();
  startScores<Shape>(scores, view, keys.stage);
  passTurn(tile.range.begin);
  waitProducts<0>();
  releaseKeys();
  maskKeys<kKeys>(p, scores, view.rows, tile.range.begin, holes);
  weighKeys<kKeys>(rows, scores, scale, rescale);
  packWeights<kKeys>(scores, weights);
  int key = tile.range.begin + kKeys;
  for (; key < tile.range.end; key += kKeys) {
    holes = waitKeys();
    waitValues(key - kKeys);
    takeTurn();
    beginProducts();
    startScores<Shape>(scores, view, keys.stage);
    startOutput<Shape>(rows, weights, view, values.stage);
    passTurn(key);
    waitProducts<1>();
    releaseKeys();
    maskKeys<kKeys>(p, scores, view.rows, key, holes);
    weighKeys<kKeys>(rows, scores, scale, rescale);
    waitProducts<0>();
    __syncwarp();
    if (leads) arrive(sharedAddress(&ring.valuesEmpty[values.stage]));
    advance<kHopperPrefillStages>(values);
    rescaleOutput(rows, rescale);
    packWeights<kKeys>(scores, weights);
  }
  waitValues(key - kKeys);
  beginProducts();
  startOutput<Shape>(rows, weights, view, values.stage);
  waitProducts<0>();
}

template <typename Shape>
__device__ __forceinline__ void writeRows(const AttentionParams& p, const PrefillTile& tile,
                                          RunningRows<Shape::kValueColumns>& rows, int warpgroup) {
  const int lane = threadIdx.x % kWarpSize;
  const bool isPartial = p.numSplits > 1;
  const float scale = exponentScale(p);
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    rows.sum[row] += __shfl_xor_sync(kFullWarp, rows.sum[row], 1);
    rows.sum[row] += __shfl_xor_sync(kFullWarp, rows.sum[row], 2);
    const int packed = tile.firstRow + warpgroup * kWarpgroupRows +
                       threadIdx.x % kWarpgroupThreads / kWarpSize * 16 + lane / 4 + row * 8;
    const int token = packed / p.group, head = tile.kvHead * p.group + packed % p.group;
    if (token >= tile.queries.numTokens) continue;
    const float maximum = rows.maximum[row] == -kInfinity ? -kInfinity : rows.maximum[row] * scale;
    const long long index = isPartial ? partialIndex(p, blockIdx.x, tile.seq, token, head) : 0;
    const float factor = isPartial ? 1.0f : outputScale(p, head, maximum, rows.sum[row]);
    auto* out = static_cast<Bf16*>(p.out) + (tile.queries.firstRow + token) * p.outStride + head * p.vHeadDim;
#pragma unroll
    for (int column = 0; column < Shape::kValueColumns; ++column) {
      const int dim = column * 8 + lane % 4 * 2;
      if (dim >= p.vHeadDim) continue;
      const float pair[2] = {rows.output[column][2 * row] * factor,
                             rows.output[column][2 * row + 1] * factor};
      if (isPartial) {
        storeFloats<float, 2>(p.partialOutputs + index * p.vHeadDim + dim, pair);
      } else {
        storeFloats<Bf16, 2>(out + dim, pair);
      }
    }
    if (isPartial && lane % 4 == 0) {
      p.partialStats[2 * index] = maximum;
      p.partialStats[2 * index + 1] = rows.sum[row];
    }
  }
}

// Grid (splits, KV heads * tiles, sequences). Dynamic shared memory: Shape::kSharedBytes.
template <int kDim, int kValueDim = kDim>
__global__ void __launch_bounds__(kHopperPrefillThreads, 1)
    hopperPrefillKernel(const __grid_constant__ HopperPrefillParams params) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = HopperPrefillShape<kDim, kValueDim>;
  extern __shared__ __align__(128) char memory[];
  __shared__ PrefillRing ring;
  releaseNext();
  waitForPrevious();
  const AttentionParams& p = params.p;
  PrefillTile tile;
  tile.seq = blockIdx.z;
  tile.kvHead = blockIdx.y % p.numKvHeads;
  const int index = gridDim.y / p.numKvHeads - 1 - blockIdx.y / p.numKvHeads;
  tile.firstRow = index * kHopperPrefillRows;
  tile.queries = queriesOf(p, tile.seq);
  const int numRows = tile.queries.numTokens * p.group - tile.firstRow;
  if (numRows <= 0) return;
  tile.range = rangeOfSplit(p, visibleKeys(p, tile.queries, index), blockIdx.x);
  if (tile.range.begin == tile.range.end) return;
  tile.table = p.pageTable + static_cast<long long>(p.tableRows[tile.seq]) * p.tableWidth;
  const int numWarpgroups = numRows > kWarpgroupRows ? 2 : 1;
  const int numWarps = numWarpgroups * kWarpgroupThreads / kWarpSize;  // that compute
  const unsigned shared = (sharedAddress(memory) + kSwizzleAlignment - 1) & ~(kSwizzleAlignment - 1);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kHopperPrefillStages; ++stage) {
      initBarrier(sharedAddress(&ring.keysFull[stage]), 1);
      initBarrier(sharedAddress(&ring.valuesFull[stage]), 1);
      initBarrier(sharedAddress(&ring.keysEmpty[stage]), numWarps);
      initBarrier(sharedAddress(&ring.valuesEmpty[stage]), numWarps);
    }
    publishBarriers();
  }
  __syncthreads();
  if (threadIdx.x < kWarpgroupThreads) {
    lowerRegisters<kCopyingRegisters>();
    if (threadIdx.x < kWarpSize) {
      copyKeyBlocks<Shape>(params, tile, shared + Shape::kQueryBytes, ring);
    }
  } else {
    raiseRegisters<kComputingRegisters>();
    const int warpgroup = warpgroupOf<Shape>(threadIdx.x / kWarpgroupThreads - 1);
    if (warpgroup < numWarpgroups) {
      copyWarpgroupQueries<Shape>(p, tile, shared, warpgroup);
      const bool takesTurns = Shape::kTakesTurns && numWarpgroups == kWarpgroups;
      if (takesTurns && warpgroup == 1) arriveNamedBarrier(kTurnBarrier, 2 * kWarpgroupThreads);
      const auto view = placeWarpgroup<Shape>(p, tile, shared, warpgroup, takesTurns);
      RunningRows<Shape::kValueColumns> rows;
      attendRows<Shape>(p, tile, view, ring, rows);
      writeRows<Shape>(p, tile, rows, warpgroup);
    }
  }
#endif
}
