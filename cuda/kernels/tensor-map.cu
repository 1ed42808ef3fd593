// Encodes tensor maps through the driver, which is found at run time: the library does not link against it.
#include "tensor-map.h"

#include <cuda.h>

namespace granary {

namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

constexpr int32_t kBoxColumns = 64;           // one swizzled row of 128 bytes
constexpr cuuint64_t kNumPages = 1ull << 30;  // more than any cache has: the caller's page ids are the bound

EncodeTiled findEncodeTiled() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                             cudaEnableDefault, &result);
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<EncodeTiled>(function);
}

// `what` and the sizes, innermost first, name the tensor in an error. `strides` leaves the innermost out.
int32_t encode(const char* what, cuuint32_t rank, granary_address base, const cuuint64_t* sizes,
               const cuuint64_t* strides, const cuuint32_t* box, TensorMap& map) {
  static_assert(sizeof(TensorMap) == sizeof(CUtensorMap), "a tensor map as the driver knows it");
  static const EncodeTiled encodeTiled = findEncodeTiled();
  if (encodeTiled == nullptr) return fail(GRANARY_DEVICE, "%s: the driver does not encode tensor maps", what);
  const cuuint32_t steps[] = {1, 1, 1, 1};
  // Promoted to more bytes than a row of the box, every line would be asked for twice.
  const CUresult result =
      encodeTiled(reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, rank,
                  pointer<void>(base), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return GRANARY_OK;
  return fail(GRANARY_DEVICE, "%s: no tensor map for %llu columns, %llu next, stride %llu (%d)", what,
              static_cast<unsigned long long>(sizes[0]), static_cast<unsigned long long>(sizes[1]),
              static_cast<unsigned long long>(strides[rank - 2]), static_cast<int>(result));
}

}  // namespace

int32_t boxRowsOf(int32_t pageSize, int32_t blockKeys) {
  const int32_t bits = pageSize | blockKeys;
  return bits & -bits;
}

int32_t encodeCacheMap(const CacheLayout& layout, int32_t boxRows, TensorMap& map) {
  const cuuint64_t headBytes = static_cast<cuuint64_t>(layout.dim) * 2;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(layout.dim), static_cast<cuuint64_t>(layout.numKvHeads),
                              static_cast<cuuint64_t>(layout.pageSize), kNumPages};
  const cuuint64_t strides[] = {headBytes, headBytes * layout.numKvHeads,
                                static_cast<cuuint64_t>(layout.pageStrideBytes)};
  const cuuint32_t box[] = {kBoxColumns, 1, static_cast<cuuint32_t>(boxRows), 1};
  return encode("attention", 4, layout.base, sizes, strides, box, map);
}

int32_t encodeMatrixMap(const MatrixLayout& layout, int32_t boxRows, TensorMap& map) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(layout.columns), static_cast<cuuint64_t>(layout.rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(layout.stride) * 2};
  const cuuint32_t box[] = {kBoxColumns, static_cast<cuuint32_t>(boxRows)};
  return encode("product", 2, layout.base, sizes, strides, box, map);
}

}  // namespace granary
