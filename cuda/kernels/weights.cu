// Prepared weights: plain row-major matrices in device memory, filled from the host or with synthetic values.
#include "weights.cuh"

#include <cmath>

#include "runtime.h"

using namespace granary;

namespace {

constexpr int64_t kMaxGridRows = 65535;

int32_t checkWeight(const GranaryWeight& a) {
  GRANARY_REQUIRE(isFloat(a.dtype), "weight: prepared dtype %d", a.dtype);
  GRANARY_REQUIRE(a.columns > 0 && a.totalRows > 0, "weight: %lld x %lld",
                  static_cast<long long>(a.totalRows), static_cast<long long>(a.columns));
  return GRANARY_OK;
}

int32_t checkPart(const GranaryWeight& a) {
  GRANARY_TRY(checkWeight(a));
  GRANARY_REQUIRE(a.rows >= 0 && a.row >= 0 && a.row + a.rows <= a.totalRows,
                  "weight: rows [%lld, %lld) of %lld", static_cast<long long>(a.row),
                  static_cast<long long>(a.row + a.rows), static_cast<long long>(a.totalRows));
  GRANARY_REQUIRE(a.sourceRow >= 0 && a.sourceColumn >= 0 && a.sourceColumn + a.columns <= a.sourceStride,
                  "weight: source columns [%lld, %lld) of %lld", static_cast<long long>(a.sourceColumn),
                  static_cast<long long>(a.sourceColumn + a.columns), static_cast<long long>(a.sourceStride));
  return GRANARY_OK;
}

char* preparedRow(const GranaryWeight& a, int64_t row) {
  return pointer<char>(a.prepared) + (a.row + row) * a.columns * bytesOf(a.dtype);
}

// Brings rows [first, first + count) of the part to `destination`, dense, still in the source's type.
int32_t copyRows(const GranaryWeight& a, int64_t first, int64_t count, void* destination) {
  const int64_t elementBytes = bytesOf(a.sourceDtype);
  const int64_t element = (a.sourceRow + first) * a.sourceStride + a.sourceColumn;
  const char* source = pointer<char>(a.hostSource) + element * elementBytes;
  const size_t rowBytes = a.columns * elementBytes;
  return check(cudaMemcpy2DAsync(destination, rowBytes, source, a.sourceStride * elementBytes, rowBytes,
                                 count, cudaMemcpyHostToDevice, runtime.stream),
               "prepare_weight");
}

template <typename T, typename TSource>
int32_t convertRows(const void* staged, void* out, int64_t count) {
  const ConvertRowsParams<T, TSource> params{static_cast<const TSource*>(staged), static_cast<T*>(out),
                                             count};
  const int64_t blocks = ceilDivide(count, kWeightThreads);
  constexpr int64_t kMaxBlocks = 4096;
  return launch<convertRowsKernel<T, TSource>>(
      "prepare_weight", dim3(blocks < kMaxBlocks ? blocks : kMaxBlocks), kWeightThreads, 0, params);
}

int32_t convert(const GranaryWeight& a, const void* staged, int64_t firstRow, int64_t count) {
  return withFloat(a.dtype, [&](auto element) {
    using T = decltype(element);
    void* out = preparedRow(a, firstRow);
    if (a.sourceDtype == GRANARY_F32) return convertRows<T, float>(staged, out, count * a.columns);
    if (a.sourceDtype == GRANARY_BF16) return convertRows<T, Bf16>(staged, out, count * a.columns);
    return convertRows<T, F16>(staged, out, count * a.columns);
  });
}

}  // namespace

extern "C" {

// A mapped file is host memory: no weight can be used in place here.
int32_t granary_weight_is_plain(int32_t) {
  return 0;
}

int64_t granary_weight_bytes(const GranaryWeight* args) {
  const int32_t status = checkWeight(*args);
  return status == GRANARY_OK ? args->totalRows * args->columns * bytesOf(args->dtype) : -status;
}

int32_t granary_prepare_weight(const GranaryWeight* args) {
  const GranaryWeight& a = *args;
  GRANARY_TRY(enterOutsideCapture("granary_prepare_weight"));
  GRANARY_TRY(checkPart(a));
  GRANARY_REQUIRE(a.sourceDtype >= GRANARY_F32 && a.sourceDtype <= GRANARY_F16, "weight: source dtype %d",
                  a.sourceDtype);
  if (a.rows == 0) return GRANARY_OK;
  if (a.sourceDtype == a.dtype) return copyRows(a, 0, a.rows, preparedRow(a, 0));
  // Raw rows pass through the workspace, which no product uses meanwhile: both are on the one stream.
  const int64_t rowBytes = a.columns * bytesOf(a.sourceDtype);
  const int64_t rowsAtOnce = runtime.workspaceBytes / rowBytes;
  GRANARY_REQUIRE(rowsAtOnce > 0, "weight: a row of %lld bytes exceeds the workspace",
                  static_cast<long long>(rowBytes));
  for (int64_t first = 0; first < a.rows; first += rowsAtOnce) {
    const int64_t count = a.rows - first < rowsAtOnce ? a.rows - first : rowsAtOnce;
    GRANARY_TRY(copyRows(a, first, count, runtime.workspace));
    GRANARY_TRY(convert(a, runtime.workspace, first, count));
  }
  return GRANARY_OK;
}

int32_t granary_synthesize(const GranarySynthesize* args) {
  const GranaryWeight& a = args->weight;
  GRANARY_TRY(enterOutsideCapture("granary_synthesize"));
  GRANARY_TRY(checkPart(a));
  if (a.rows == 0) return GRANARY_OK;
  const int64_t firstElement = args->firstElement + a.sourceRow * a.sourceStride + a.sourceColumn;
  const dim3 grid(ceilDivide(a.columns, kWeightThreads), a.rows < kMaxGridRows ? a.rows : kMaxGridRows);
  return withFloat(a.dtype, [&](auto element) {
    using T = decltype(element);
    const SynthesizeParams<T> params{reinterpret_cast<T*>(preparedRow(a, 0)),
                                     firstElement,
                                     a.sourceStride,
                                     a.rows,
                                     static_cast<int>(a.columns),
                                     args->scale * std::sqrt(3.0),
                                     args->offset,
                                     args->a,
                                     args->b};
    return launch<synthesizeKernel<T>>("synthesize", grid, kWeightThreads, 0, params);
  });
}

}  // extern "C"
