// min-p, top-k and top-p over the weights of one row.
//
// top-k selects, and a nucleus behind it walks the selected in order. A nucleus alone does not sort the
// vocabulary: weights are summed by bins of the scaled logit, the bin in which the sum passes top-p is found,
// and only that one is sorted.
#include "sample-keep.h"

#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

// Bins are 1/64 wide in the exponent; the last one takes all that lies below -32, less than 1e-9 of the mass
// of any vocabulary.
constexpr float kBinsPerUnit = 64;

int binOf(float scaled) {
  const float distance = -scaled * kBinsPerUnit;
  return distance < kNucleusBins - 1 ? static_cast<int>(distance) : kNucleusBins - 1;
}

void drop(float* scaled, float* weights, int64_t id) {
  scaled[id] = -__builtin_inff();
  weights[id] = 0;
}

void keepMinP(float minP, int32_t vocab, float* scaled, float* weights) {
  const float bound = minP < 1 ? minP : 1;  // the best token has weight 1
  for (int32_t i = 0; i < vocab; ++i) {
    if (weights[i] < bound) drop(scaled, weights, i);
  }
}

// Tokens of a descending list that the nucleus keeps: those in front of which less than topP of the total
// lies.
int64_t nucleusLength(const Ranked* ranked, int64_t count, const float* weights, double before,
                      double bound) {
  double sum = before;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0 && sum >= bound) return i;
    sum += static_cast<double>(weights[ranked[i].id()]);
  }
  return count;
}

void keepTopK(const GranarySamplingParams& params, int32_t vocab, const SampleScratch& scratch,
              const float* scaled) {
  int64_t kept = params.topK;
  selectLargest(scaled, vocab, kept, scratch.ranked);
  if (params.topP < 1) {
    double total = 0;
    for (int64_t i = 0; i < kept; ++i) total += static_cast<double>(scratch.weights[scratch.ranked[i].id()]);
    kept = nucleusLength(scratch.ranked, kept, scratch.weights, 0, static_cast<double>(params.topP) * total);
  }
  // Everything behind the kept ones drops out. Their weights ride in the upper half of their words meanwhile.
  for (int64_t i = 0; i < kept; ++i) {
    const int32_t id = scratch.ranked[i].id();
    uint32_t bits;
    memcpy(&bits, scratch.weights + id, sizeof bits);
    scratch.ranked[i].key = static_cast<uint64_t>(bits) << 32 | static_cast<uint32_t>(id);
  }
  memset(scratch.weights, 0, sizeof(float) * static_cast<size_t>(vocab));
  for (int64_t i = 0; i < kept; ++i) {
    const uint32_t bits = static_cast<uint32_t>(scratch.ranked[i].key >> 32);
    memcpy(scratch.weights + static_cast<uint32_t>(scratch.ranked[i].key), &bits, sizeof bits);
  }
}

void keepNucleus(float topP, int32_t vocab, float* scaled, const SampleScratch& scratch) {
  float* weights = scratch.weights;
  double* bins = scratch.bins;
  memset(bins, 0, sizeof(double) * kNucleusBins);
  for (int32_t i = 0; i < vocab; ++i) {
    if (weights[i] > 0) bins[binOf(scaled[i])] += static_cast<double>(weights[i]);
  }
  double total = 0;
  for (int b = 0; b < kNucleusBins; ++b) total += bins[b];
  const double bound = static_cast<double>(topP) * total;
  double before = 0;
  int last = 0;
  while (last + 1 < kNucleusBins && before + bins[last] < bound) before += bins[last++];
  int64_t count = 0;
  for (int32_t i = 0; i < vocab; ++i) {
    if (weights[i] > 0 && binOf(scaled[i]) == last) scratch.ranked[count++] = Ranked::of(scaled[i], i);
  }
  std::sort(scratch.ranked, scratch.ranked + count, RanksHigher{});
  const int64_t kept = nucleusLength(scratch.ranked, count, weights, before, bound);
  for (int64_t i = kept; i < count; ++i) drop(scaled, weights, scratch.ranked[i].id());
  for (int32_t i = 0; i < vocab; ++i) {
    if (weights[i] > 0 && binOf(scaled[i]) > last) drop(scaled, weights, i);
  }
}

}  // namespace

void keepLikely(const GranarySamplingParams& params, int32_t vocab, float* scaled,
                const SampleScratch& scratch) {
  if (params.minP > 0) keepMinP(params.minP, vocab, scaled, scratch.weights);
  if (params.topK > 0 && params.topK < vocab) keepTopK(params, vocab, scratch, scaled);
  else if (params.topP < 1) keepNucleus(params.topP, vocab, scaled, scratch);
}

}  // namespace granary::GRANARY_ISA
