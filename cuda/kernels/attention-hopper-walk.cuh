// Which keys a block of the persistent decode kernel works on. Blocks stand in groups, one block a KV head:
// the blocks of a group read the same pages at about the same time, as memory likes it. The sequences, laid
// end to end and cut into units of 64 keys, are dealt to the groups in equal runs, found on the device from
// the lengths of the moment: blocks are as busy for mixed lengths as for equal ones, and a recorded graph
// stays valid. A sequence that more than one group touches is shared: its parts meet in the merge.
#pragma once
#include "attention-params.cuh"

constexpr int kUnitKeys = 64;
// Of a group's run: below that the merge of parts costs more than reading them side by side saves.
constexpr int kMinGroupUnits = 4;

// Keys of a sequence, from the first that any query sees.
struct DecodeKeys {
  SequenceQueries queries;
  int begin, end;  // begin is a multiple of kUnitKeys
  int numUnits;    // 0 for padding
};

__device__ __forceinline__ DecodeKeys decodeKeysOf(const AttentionParams& p, int seq) {
  DecodeKeys keys;
  keys.queries = queriesOf(p, seq);
  keys.begin = firstKeyOf(p, keys.queries.firstPosition) / kUnitKeys * kUnitKeys;
  keys.end = keys.queries.firstPosition + keys.queries.numTokens;
  keys.numUnits = keys.queries.numTokens == 0 ? 0 : (keys.end - keys.begin + kUnitKeys - 1) / kUnitKeys;
  return keys;
}

// How the units are dealt: the first `numWide` groups take quotient + 1, the others quotient.
struct UnitShares {
  int quotient, numWide;

  __device__ __forceinline__ int firstOf(int group) const { return group * quotient + min(group, numWide); }
  __device__ __forceinline__ int groupOf(int unit) const {
    const int wide = numWide * (quotient + 1);
    return unit < wide ? unit / (quotient + 1) : numWide + (unit - wide) / quotient;
  }
};

// A group's walk over its run, sequence by sequence.
struct DecodeWalk {
  int seq;
  int unit;       // of the sequence, where this group enters it
  int unitsLeft;  // of the group's run, from here
  int position;   // of `unit` among all units
  DecodeKeys keys;

  __device__ __forceinline__ bool isDone() const { return unitsLeft == 0; }
  // Units of this sequence that are the group's.
  __device__ __forceinline__ int numUnits() const { return min(keys.numUnits - unit, unitsLeft); }
  __device__ __forceinline__ int firstKey() const { return keys.begin + unit * kUnitKeys; }
  __device__ __forceinline__ bool isWhole() const { return numUnits() == keys.numUnits; }

  __device__ __forceinline__ void next(const AttentionParams& p) {
    const int done = numUnits();
    unitsLeft -= done;
    position += done;
    unit = 0;
    if (unitsLeft == 0) return;
    do {
      keys = decodeKeysOf(p, ++seq);
    } while (keys.numUnits == 0);
  }
};

struct DecodeStart {
  int seq, unitsBefore;
};

// Finds the start of a group's run; every thread of the block takes part.
template <int kThreads>
__device__ __forceinline__ DecodeWalk startWalk(const AttentionParams& p, int group, int numGroups,
                                                UnitShares& shares, DecodeStart& start,
                                                int (&totals)[kThreads / kWarpSize]) {
  const int each = (p.numSeqs + kThreads - 1) / kThreads, lane = threadIdx.x % kWarpSize;
  const int begin = min(static_cast<int>(threadIdx.x) * each, p.numSeqs), end = min(begin + each, p.numSeqs);
  int own = 0;
  for (int seq = begin; seq < end; ++seq) own += decodeKeysOf(p, seq).numUnits;
  int upTo = own;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const int below = __shfl_up_sync(kFullWarp, upTo, distance);
    if (lane >= distance) upTo += below;
  }
  if (lane == kWarpSize - 1) totals[threadIdx.x / kWarpSize] = upTo;
  __syncthreads();
  int before = upTo - own, total = 0;
#pragma unroll
  for (int warp = 0; warp < kThreads / kWarpSize; ++warp) {
    if (warp < static_cast<int>(threadIdx.x) / kWarpSize) before += totals[warp];
    total += totals[warp];
  }
  const int worth = (total + kMinGroupUnits - 1) / kMinGroupUnits;
  const int used = max(1, min(numGroups, worth));
  shares = UnitShares{total / used, total % used};
  if (group >= used) return DecodeWalk{};
  const int first = shares.firstOf(group);
  DecodeWalk walk;
  walk.unitsLeft = shares.firstOf(group + 1) - first;
  walk.position = first;
  if (walk.unitsLeft == 0) return walk;
  if (first >= before && first < before + own) {
    int seq = begin;
    for (;; ++seq) {
      const int units = decodeKeysOf(p, seq).numUnits;
      if (first < before + units) break;
      before += units;
    }
    start = DecodeStart{seq, before};
  }
  __syncthreads();
  walk.seq = start.seq;
  walk.keys = decodeKeysOf(p, walk.seq);
  walk.unit = first - start.unitsBefore;
  return walk;
}
