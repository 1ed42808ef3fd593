// Takes in attention kernels compiled at run time and finds them again by what they serve.
#include "attention-loaded.h"

#include "paged-decode.cuh"
#include "paged-prefill.cuh"

namespace granary {

namespace {

// A model has a handful of head dimensions; a process may build several engines.
constexpr int kMaxLoaded = 64;

struct Loaded {
  GranaryAttentionKernel key;
  cudaLibrary_t library;
  LoadedKernel kernel;
};

Loaded loaded[kMaxLoaded];
int numLoaded = 0;

bool isScalar(const GranaryAttentionKernel& key) {
  return key.kind == GRANARY_ATTENTION_SCALAR;
}

bool serves(const GranaryAttentionKernel& key, int32_t dtype, int32_t kvDtype, bool isWide) {
  return isScalar(key) && key.dtype == dtype && key.kvDtype == kvDtype && (key.isWide != 0) == isWide;
}

bool isSame(const GranaryAttentionKernel& a, const GranaryAttentionKernel& b) {
  if (a.kind != b.kind || a.dim != b.dim) return false;
  return !isScalar(a) || serves(a, b.dtype, b.kvDtype, b.isWide != 0);
}

int32_t sharedBytesOf(const GranaryAttentionKernel& key) {
  switch (key.kind) {
    case GRANARY_ATTENTION_DECODE: return decodeSharedBytes(key.dim, key.stages);
    case GRANARY_ATTENTION_PREFILL: return prefillSharedBytes(key.dim);
    default: return 0;
  }
}

int32_t load(Loaded& entry) {
  const void* image = pointer<void>(entry.key.image);
  cudaKernel_t kernel = nullptr;
  cudaError_t error = cudaLibraryLoadData(&entry.library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (error == cudaSuccess) {
    error = cudaLibraryEnumerateKernels(&kernel, 1, entry.library);
    // An image may be looked at only now.
    if (error == cudaSuccess) error = loadKernel(kernel);
    if (error != cudaSuccess) cudaLibraryUnload(entry.library);
  }
  if (error != cudaSuccess) {
    cudaGetLastError();  // the device is well: it is the image that does not fit it
    return fail(GRANARY_UNSUPPORTED, "load_attention_kernel: %s", cudaGetErrorString(error));
  }
  entry.kernel = LoadedKernel{kernel, sharedBytesOf(entry.key)};
  return GRANARY_OK;
}

}  // namespace

LoadedKernel loadedTileKernel(GranaryAttentionKernelKind kind, int32_t dim) {
  for (int i = 0; i < numLoaded; ++i) {
    if (loaded[i].key.kind == kind && loaded[i].key.dim == dim) return loaded[i].kernel;
  }
  return {};
}

LoadedKernel loadedScalarKernel(int32_t dim, int32_t dtype, int32_t kvDtype, bool isWide) {
  const Loaded* best = nullptr;
  for (int i = 0; i < numLoaded; ++i) {
    const GranaryAttentionKernel& key = loaded[i].key;
    if (key.dim < dim || !serves(key, dtype, kvDtype, isWide)) continue;
    if (best == nullptr || key.dim < best->key.dim) best = &loaded[i];
  }
  return best != nullptr ? best->kernel : LoadedKernel{};
}

void unloadAttention() {
  for (int i = 0; i < numLoaded; ++i) cudaLibraryUnload(loaded[i].library);
  numLoaded = 0;
}

}  // namespace granary

using namespace granary;

extern "C" int32_t granary_load_attention_kernel(const GranaryAttentionKernel* args) {
  GRANARY_TRY(enterOutsideCapture("granary_load_attention_kernel"));
  GRANARY_REQUIRE(args->image != 0 && args->dim > 0, "load_attention_kernel: no image, or no dimension");
  GRANARY_REQUIRE(args->kind >= GRANARY_ATTENTION_SCALAR && args->kind <= GRANARY_ATTENTION_PREFILL,
                  "load_attention_kernel: kind %d", args->kind);
  GRANARY_REQUIRE(args->kind != GRANARY_ATTENTION_DECODE || args->stages >= 2,
                  "load_attention_kernel: %d stages", args->stages);
  for (int i = 0; i < numLoaded; ++i) {
    if (isSame(loaded[i].key, *args)) return GRANARY_OK;
  }
  GRANARY_REQUIRE(numLoaded < kMaxLoaded, "load_attention_kernel: more than %d kernels", kMaxLoaded);
  loaded[numLoaded].key = *args;
  GRANARY_TRY(load(loaded[numLoaded]));
  numLoaded++;
  return GRANARY_OK;
}
