// Device and page-locked memory, and stream-ordered copies.
#include <map>

#include "runtime.h"
#include "staging.h"

using namespace granary;

namespace {

// Page-locked memory that we gave out, first byte and length: copies from there need no staging.
std::map<granary_address, int64_t> pinned;

bool isPinned(granary_address address) {
  auto after = pinned.upper_bound(address);
  if (after == pinned.begin()) return false;
  --after;
  return address < after->first + after->second;
}

// A captured copy is replayed later, so its host side must be page-locked memory that stays where it is.
int32_t requirePinned(granary_address host) {
  cudaPointerAttributes attributes;
  GRANARY_TRY(check(cudaPointerGetAttributes(&attributes, pointer<void>(host)), "memory kind"));
  if (attributes.type == cudaMemoryTypeHost) return GRANARY_OK;
  return fail(GRANARY_CAPTURE, "a copy inside a capture needs page-locked host memory");
}

}  // namespace

extern "C" {

void* granary_alloc(int64_t bytes) {
  void* address = nullptr;
  if (enterOutsideCapture("granary_alloc") != GRANARY_OK) return nullptr;
  if (bytes <= 0) {
    fail(GRANARY_INVALID, "granary_alloc of %lld bytes", static_cast<long long>(bytes));
    return nullptr;
  }
  if (check(cudaMalloc(&address, bytes), "granary_alloc") != GRANARY_OK) return nullptr;
  if (check(cudaMemsetAsync(address, 0, bytes, runtime.stream), "granary_alloc") == GRANARY_OK)
    return address;
  cudaFree(address);
  return nullptr;
}

int32_t granary_free(granary_address address) {
  GRANARY_TRY(enterOutsideCapture("granary_free"));
  return check(cudaFree(pointer<void>(address)), "granary_free");
}

void* granary_alloc_pinned(int64_t bytes) {
  void* address = nullptr;
  if (enterOutsideCapture("granary_alloc_pinned") != GRANARY_OK) return nullptr;
  if (bytes <= 0) {
    fail(GRANARY_INVALID, "granary_alloc_pinned of %lld bytes", static_cast<long long>(bytes));
    return nullptr;
  }
  const unsigned flags = cudaHostAllocPortable | cudaHostAllocMapped;
  if (check(cudaHostAlloc(&address, bytes, flags), "granary_alloc_pinned") != GRANARY_OK) return nullptr;
  pinned[reinterpret_cast<granary_address>(address)] = bytes;
  return address;
}

int32_t granary_free_pinned(granary_address address) {
  GRANARY_TRY(enterOutsideCapture("granary_free_pinned"));
  pinned.erase(address);
  return check(cudaFreeHost(pointer<void>(address)), "granary_free_pinned");
}

int32_t granary_copy(granary_address destination, granary_address source, int64_t bytes, int32_t kind) {
  GRANARY_TRY(enter());
  GRANARY_REQUIRE(bytes >= 0, "granary_copy of %lld bytes", static_cast<long long>(bytes));
  GRANARY_REQUIRE(kind >= GRANARY_HOST_TO_DEVICE && kind <= GRANARY_DEVICE_TO_DEVICE, "copy kind %d", kind);
  if (bytes == 0) return GRANARY_OK;
  if (runtime.isCapturing && kind != GRANARY_DEVICE_TO_DEVICE) {
    GRANARY_TRY(requirePinned(kind == GRANARY_HOST_TO_DEVICE ? source : destination));
  }
  const bool isSmall = kind == GRANARY_HOST_TO_DEVICE && bytes <= kMaxStagedBytes;
  if (isSmall && !runtime.isCapturing && !isPinned(source)) {
    return stageUpload(pointer<void>(destination), pointer<void>(source), bytes);
  }
  static constexpr cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                             cudaMemcpyDeviceToDevice};
  return check(
      cudaMemcpyAsync(pointer<void>(destination), pointer<void>(source), bytes, kinds[kind], runtime.stream),
      "granary_copy");
}

int32_t granary_synchronize(void) {
  GRANARY_TRY(enterOutsideCapture("granary_synchronize"));
  GRANARY_TRY(check(cudaStreamSynchronize(runtime.stream), "granary_synchronize"));
  return enter();  // a debug check that has just run may have found something
}

}  // extern "C"
