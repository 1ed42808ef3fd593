// What lies between the projection and attention: norm and rotation of q and k, and the write of k and v to
// their pages.
//   qkv f32 [rows, numQHeads * headDim | numKvHeads * headDim | numKvHeads * vHeadDim]
//   qOut f32 [rows, numQHeads * headDim]; caches in kvDtype, rounded once to nearest even
// One piece of rows a task. Bound: memory.
#include "kernel.h"

namespace granary::GRANARY_ISA {

namespace {

// a * cos - b * sin and b * cos + a * sin, each product rounded on its own.
void rotateHalves(float* head, const float* cosSin, int32_t pairs) {
  for (int32_t i = 0; i < pairs; ++i) {
    const float a = head[i];
    const float b = head[i + pairs];
    head[i] = a * cosSin[2 * i] - b * cosSin[2 * i + 1];
    head[i + pairs] = b * cosSin[2 * i] + a * cosSin[2 * i + 1];
  }
}

void rotateNeighbours(float* head, const float* cosSin, int32_t pairs) {
  for (int32_t i = 0; i < pairs; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cosSin[2 * i] - b * cosSin[2 * i + 1];
    head[2 * i + 1] = b * cosSin[2 * i] + a * cosSin[2 * i + 1];
  }
}

void prepareHead(const GranaryQkv& args, float* head, const float* in, granary_address norm,
                 const float* cosSin) {
  if (norm != 0) {
    const Vec16 factor = broadcast(rmsFactor(in, args.headDim, args.eps));
    const Vec16 offset = broadcast(args.normWeightOffset);
    mapRows(head, in, at<const float>(norm), args.headDim,
            [&](Vec16 a, Vec16 w) { return mul(mul(a, factor), add(w, offset)); });
  } else {
    memcpy(head, in, sizeof(float) * static_cast<size_t>(args.headDim));
  }
  if (cosSin == nullptr) return;
  if (args.interleaved != 0) rotateNeighbours(head, cosSin, args.pairs);
  else rotateHalves(head, cosSin, args.pairs);
}

// Row `location` of one cache: all its heads, of `dim` elements each.
template <typename T>
T* cacheRow(granary_address cache, int64_t pageStrideBytes, int64_t location, int64_t pageSize,
            int64_t rowElements) {
  char* page = at<char>(cache) + location / pageSize * pageStrideBytes;
  return reinterpret_cast<T*>(page) + location % pageSize * rowElements;
}

template <typename T>
void writeKv(const GranaryQkv& args, const float* k, const float* v, const float* cosSin, int64_t location) {
  const int64_t headDim = args.headDim;
  const int64_t vElements = static_cast<int64_t>(args.numKvHeads) * args.vHeadDim;
  T* kOut =
      cacheRow<T>(args.kCache, args.kPageStrideBytes, location, args.pageSize, args.numKvHeads * headDim);
  T* vOut = cacheRow<T>(args.vCache, args.vPageStrideBytes, location, args.pageSize, vElements);
  float head[kMaxHeadDim];
  for (int64_t h = 0; h < args.numKvHeads; ++h) {
    prepareHead(args, head, k + h * headDim, args.kNorm, cosSin);
    storeRounded(kOut + h * headDim, head, headDim);
  }
  storeRounded(vOut, v, vElements);
}

void qkvRow(const GranaryQkv& args, int64_t row) {
  const float* q = at<const float>(args.qkv) + row * args.qkvStride;
  const float* k = q + static_cast<int64_t>(args.numQHeads) * args.headDim;
  const float* v = k + static_cast<int64_t>(args.numKvHeads) * args.headDim;
  const float* cosSin = args.cosSin == 0 ? nullptr : at<const float>(args.cosSin) + row * args.pairs * 2;
  if (args.kCache != 0) {
    const int64_t location = at<const int32_t>(args.locations)[row];
    if (location >= 0 && args.kvDtype == GRANARY_BF16) writeKv<uint16_t>(args, k, v, cosSin, location);
    else if (location >= 0) writeKv<float>(args, k, v, cosSin, location);
  }
  float* out = at<float>(args.qOut) + row * args.qOutStride;
  float head[kMaxHeadDim];
  for (int64_t h = 0; h < args.numQHeads; ++h) {
    prepareHead(args, head, q + h * args.headDim, args.qNorm, cosSin);
    memcpy(out + h * args.headDim, head, sizeof(float) * static_cast<size_t>(args.headDim));
  }
}

}  // namespace

void qkv(const GranaryQkv& args) {
  const int64_t elements = static_cast<int64_t>(args.numQHeads + args.numKvHeads) * args.headDim +
                           static_cast<int64_t>(args.numKvHeads) * args.vHeadDim;
  forEachRange(args.rows, 6 * elements, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) qkvRow(args, r);
  });
}

}  // namespace granary::GRANARY_ISA
