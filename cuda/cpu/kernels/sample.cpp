// Sampling: one token a row.
//   logits f32 [rows, vocab], changed in place -> out int32 [rows], lastTokens int32 [numSlots]
// A row is one task, and everything in it is a function of its own logits, parameters and position: the same
// token comes out whatever the batch. After the draw a row whose parameters use counts adds its token to its
// slot's counts.
#include "../simd/select.h"
#include "kernel.h"
#include "philox.h"
#include "sample-adjust.h"
#include "sample-keep.h"

namespace granary::GRANARY_ISA {

namespace {

// Weights are summed in blocks, so that the walk to the drawn token touches one block only.
constexpr int64_t kDrawBlock = 256;

bool anyFinite(const float* in, int64_t count) {
  const Vec16 infinity = broadcast(__builtin_inff());
  uint32_t found = 0;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) found |= greaterMask(infinity, abs(load(in + i)));
  for (; i < count; ++i) found |= __builtin_isfinite(in[i]) ? 1 : 0;
  return found != 0;
}

int32_t firstEqual(const float* in, int64_t count, float value) {
  for (int64_t i = 0; i < count; ++i) {
    if (in[i] == value) return static_cast<int32_t>(i);
  }
  return -1;
}

// Logits less their maximum, divided by the temperature; the maximum becomes an exact 0 even if it is
// infinite.
void scaleLogits(float* logits, int64_t count, float largest, float temperature) {
  const float infinity = __builtin_inff();
  if (largest == infinity) {
    for (int64_t i = 0; i < count; ++i) logits[i] = logits[i] == infinity ? 0 : -infinity;
    return;
  }
  const Vec16 shift = broadcast(largest);
  const Vec16 divisor = broadcast(temperature);
  mapRow(logits, logits, count, [&](Vec16 a) { return div(sub(a, shift), divisor); });
}

double blockSum(const float* weights, int64_t begin, int64_t count) {
  return static_cast<double>(sumOf(weights + begin, count - begin < kDrawBlock ? count - begin : kDrawBlock));
}

// The first id whose cumulative weight exceeds u times the total. Should rounding leave that bound unreached,
// the last one.
int32_t draw(const float* weights, int64_t count, double u) {
  double total = 0;
  for (int64_t b = 0; b < count; b += kDrawBlock) total += blockSum(weights, b, count);
  const double bound = u * total;
  double before = 0;
  for (int64_t b = 0; b < count; b += kDrawBlock) {
    const double sum = blockSum(weights, b, count);
    if (before + sum > bound) {
      double within = before;
      for (int64_t i = b; i < count && i < b + kDrawBlock; ++i) {
        within += static_cast<double>(weights[i]);
        if (within > bound) return static_cast<int32_t>(i);
      }
    }
    before += sum;
  }
  int64_t last = count - 1;
  while (last > 0 && !(weights[last] > 0)) --last;
  return static_cast<int32_t>(last);
}

int32_t sampleRow(const GranarySample& args, int64_t row, int32_t slot, const SampleScratch& scratch) {
  float* logits = at<float>(args.logits) + row * args.logitsStride;
  const GranarySamplingParams& params = at<const GranarySamplingParams>(args.params)[slot];
  if (holdsNan(logits, args.vocab)) return -1;
  adjustLogits(args, params, row, slot, logits);
  if (holdsNan(logits, args.vocab) || !anyFinite(logits, args.vocab)) return -1;
  const float largest = maxOf(logits, args.vocab);
  if (!(params.temperature > 0)) return firstEqual(logits, args.vocab, largest);
  scaleLogits(logits, args.vocab, largest, params.temperature);
  mapRow(scratch.weights, logits, args.vocab, [](Vec16 a) { return exp(a); });
  keepLikely(params, args.vocab, logits, scratch);
  const uint32_t position = static_cast<uint32_t>(at<const int32_t>(args.positions)[row]);
  const uint32_t random = philox(params.seedLow, params.seedHigh, position,
                                 static_cast<uint32_t>(params.choice), static_cast<uint32_t>(args.draw), 0);
  return draw(scratch.weights, args.vocab, (random + 0.5) / 4294967296.0);
}

void recordToken(const GranarySample& args, int64_t row, int32_t slot, int32_t token) {
  at<int32_t>(args.out)[row] = token;
  if (args.lastTokens != 0) at<int32_t>(args.lastTokens)[slot] = token;
  const bool counts = at<const GranarySamplingParams>(args.params)[slot].usesCounts != 0 && args.counts != 0;
  if (counts && token >= 0) ++at<uint32_t>(args.counts)[static_cast<int64_t>(slot) * args.vocab + token];
}

struct Layout {
  int64_t weights, ranked, bins;  // bytes of one thread
  int64_t threadBytes() const { return weights + ranked + bins; }
};

Layout layoutOf(const GranarySample& args) {
  const int64_t vocab = args.vocab;
  return {
      .weights = roundUp(vocab * 4, 64),
      .ranked = roundUp((vocab + kLanes) * static_cast<int64_t>(sizeof(Ranked)), 64),
      .bins = kNucleusBins * static_cast<int64_t>(sizeof(double)),
  };
}

}  // namespace

int64_t sampleScratchBytes(const GranarySample& args) { return layoutOf(args).threadBytes() * numThreads(); }

void sample(const GranarySample& args) {
  const Layout layout = layoutOf(args);
  const int32_t* slots = at<const int32_t>(args.slots);
  forEachRange(args.rows, 40 * static_cast<int64_t>(args.vocab),
               [&](int64_t begin, int64_t end, int32_t thread) {
                 char* own = at<char>(args.scratch) + thread * layout.threadBytes();
                 const SampleScratch scratch = {
                     reinterpret_cast<float*>(own),
                     reinterpret_cast<Ranked*>(own + layout.weights),
                     reinterpret_cast<double*>(own + layout.weights + layout.ranked),
                 };
                 for (int64_t r = begin; r < end; ++r) {
                   if (slots[r] >= 0) recordToken(args, r, slots[r], sampleRow(args, r, slots[r], scratch));
                 }
               });
}

}  // namespace granary::GRANARY_ISA
