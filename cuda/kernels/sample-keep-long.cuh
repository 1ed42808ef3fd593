// top-k and top-p over a row with more candidates than shared memory holds: the bin in which the threshold
// lies, then a range of its keys that is small enough to be gathered, then the same bisection as for any row.
#pragma once
#include "sample-keep.cuh"
#include "sample-weigh.cuh"

// Largest key of a bin; bins hold lower values the higher their number.
__device__ __forceinline__ unsigned lastKeyOf(int bin) {
  return orderedBits(-bin / kBinsPerUnit);
}
// Smallest key of a bin; the last bin takes all finite values below.
__device__ __forceinline__ unsigned firstKeyOf(int bin) {
  return 1 + (bin == kSampleBins - 1 ? orderedBits(-kInfinity) : lastKeyOf(bin + 1));
}

struct RangeMeasure {
  Mass above;   // measure of larger keys
  Mass inside;  // tokens, whatever they weigh
};

template <bool kByMass>
__device__ __forceinline__ RangeMeasure measureRange(const ScaledRow& row, unsigned first, unsigned last,
                                                     const BlockTeam& team) {
  Mass above = 0, inside = 0;
#pragma unroll 4
  for (int i = threadIdx.x; i < row.count; i += BlockTeam::kSize) {
    const float value = row.values[i];
    const unsigned key = orderedBits(value);
    if (key > last) above += measureOf<kByMass>(value);
    inside += key >= first && key <= last;
  }
  return RangeMeasure{team.sum(above), team.sum(inside)};
}

// In shared memory.
struct GatherRoom {
  int count;
  float values[kMaxCandidates];
};

// The values of a range that the room can hold, in any order.
__device__ __forceinline__ ScaledRow gatherRange(const ScaledRow& row, const KeyRange& range,
                                                 GatherRoom& room) {
  if (threadIdx.x == 0) room.count = 0;
  __syncthreads();
#pragma unroll 4
  for (int i = threadIdx.x; i < row.count; i += BlockTeam::kSize) {
    const float value = row.values[i];
    if (range.holds(orderedBits(value))) room.values[atomicAdd(&room.count, 1)] = value;
  }
  __syncthreads();
  return ScaledRow{room.values, room.count};
}

// As narrow, from all finite tokens. `lastBin` is that of the threshold or one of lower values.
template <bool kByMass>
__device__ __forceinline__ Threshold narrowLong(const ScaledRow& row, int lastBin, Mass target,
                                                const BlockTeam& team, GatherRoom& room) {
  const Threshold all{orderedBits(-kInfinity), 0};
  unsigned first = firstKeyOf(lastBin), last = lastKeyOf(lastBin);
  RangeMeasure measure = measureRange<kByMass>(row, first, last, team);
  if (measure.above >= target) {  // the bin was found by masses that are a little too small
    first = last + 1;
    last = lastKeyOf(0);
    measure = measureRange<kByMass>(row, first, last, team);
  }
  // Only tokens can be fewer than were asked for: what has to be reached in mass is a share of their own.
  if (!kByMass && measure.above + measure.inside < target) return all;
  KeyRange range{first, last, measure.above};
  Mass numInside = measure.inside;
#pragma unroll 1
  while (numInside > kMaxCandidates && !range.isOneKey()) {
    const unsigned middle = range.middle();
    const RangeMeasure lower = measureRange<kByMass>(row, range.first, middle - 1, team);
    range.halve(lower.above - range.above, target);
    numInside = range.first == middle ? numInside - lower.inside : lower.inside;
  }
  if (range.isOneKey()) return bisect<kByMass>(row, range, all, target, team);
  return bisect<kByMass>(gatherRange(row, range, room), range, all, target, team);
}

// As keepLikely.
__device__ __forceinline__ Threshold keepLikelyLong(const SampleParams& p, const SlotParams& slot,
                                                    const ScaledRow& row, int lastBin, Mass whole,
                                                    const BlockTeam& team, GatherRoom& room) {
  if (!hasTopK(p, slot)) return narrowLong<true>(row, lastBin, topPTarget(slot.topP, whole), team, room);
  const Threshold kept = narrowLong<false>(row, lastBin, slot.topK, team, room);
  if (slot.topP >= 1.0f) return kept;
  whole = measureWithin<true>(row, 0, kLastKey, kept, team);
  return narrow<true>(row, kept, topPTarget(slot.topP, whole), team);
}
