// Prepared weights: plain row-major here, so preparing is a conversion, and synthetic values in place of a
// source. One piece of rows a task. Bound: memory; for synthetic values the float64 conversions.
#include <math.h>

#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

// One row of the source, widened to f32 in pieces on the stack. memcpy, because a mapped file may be
// unaligned.
constexpr int64_t kPiece = 256;

void widenPiece(float* out, const char* in, int32_t dtype, int64_t count) {
  if (dtype == GRANARY_F32) {
    memcpy(out, in, sizeof(float) * static_cast<size_t>(count));
    return;
  }
  uint16_t halves[kPiece] = {};
  memcpy(halves, in, sizeof(uint16_t) * static_cast<size_t>(count));
  if (dtype == GRANARY_BF16) {
    for (int64_t i = 0; i < count; ++i) out[i] = widen(halves[i]);
    return;
  }
  for (int64_t i = 0; i < kPiece && i < count; i += 8) {
    float wide[8];
    _mm256_storeu_ps(wide, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i))));
    memcpy(out + i, wide, sizeof(float) * static_cast<size_t>(count - i < 8 ? count - i : 8));
  }
}

template <typename T>
void prepareRow(const GranaryWeight& args, int64_t row) {
  const int64_t elementBytes = args.sourceDtype == GRANARY_F32 ? 4 : 2;
  const char* in = at<const char>(args.hostSource) +
                   ((args.sourceRow + row) * args.sourceStride + args.sourceColumn) * elementBytes;
  T* out = at<T>(args.prepared) + (args.row + row) * args.columns;
  const bool isCopy = args.sourceDtype == args.dtype;
  if (isCopy) {
    memcpy(out, in, sizeof(T) * static_cast<size_t>(args.columns));
    return;
  }
  float piece[kPiece];
  for (int64_t begin = 0; begin < args.columns; begin += kPiece) {
    const int64_t count = args.columns - begin < kPiece ? args.columns - begin : kPiece;
    widenPiece(piece, in + begin * elementBytes, args.sourceDtype, count);
    storeRounded(out + begin, piece, count);
  }
}

uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x21f0aaadu;
  x ^= x >> 15;
  x *= 0x735a2d97u;
  x ^= x >> 15;
  return x;
}

template <typename T>
void synthesizeRow(const GranarySynthesize& args, int64_t row) {
  const GranaryWeight& weight = args.weight;
  const int64_t first =
      args.firstElement + (weight.sourceRow + row) * weight.sourceStride + weight.sourceColumn;
  T* out = at<T>(weight.prepared) + (weight.row + row) * weight.columns;
  const double amplitude = args.scale * ::sqrt(3.0);
  for (int64_t c = 0; c < weight.columns; ++c) {
    const uint32_t h = mix(mix(static_cast<uint32_t>(first + c) ^ args.a) + args.b);
    const double x = (static_cast<double>(h >> 8) + 0.5) / 8388608.0 - 1.0;
    const uint16_t rounded = roundToBf16(static_cast<float>(args.offset + amplitude * x));
    if constexpr (sizeof(T) == sizeof(uint16_t)) out[c] = rounded;
    else out[c] = widen(rounded);
  }
}

}  // namespace

void prepareWeight(const GranaryWeight& args) {
  forEachRange(args.rows, args.columns, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      if (args.dtype == GRANARY_BF16) prepareRow<uint16_t>(args, r);
      else prepareRow<float>(args, r);
    }
  });
}

void synthesize(const GranarySynthesize& args) {
  forEachRange(args.weight.rows, 8 * args.weight.columns, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) {
      if (args.weight.dtype == GRANARY_BF16) synthesizeRow<uint16_t>(args, r);
      else synthesizeRow<float>(args, r);
    }
  });
}

}  // namespace granary::GRANARY_ISA
