// The library's state and its errors: initialisation, the sticky device error, kernel registration, debug
// checks.
#include "runtime.h"

#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attention-loaded.h"
#include "check-ids.cuh"
#include "cublaslt.h"
#include "product-choice.h"
#include "staging.h"

namespace granary {

Runtime runtime;
KernelEntry* KernelEntry::first = nullptr;

namespace {

constexpr int64_t kDefaultWorkspaceBytes = 64 << 20;
constexpr int kErrorBytes = 512;

thread_local char lastError[kErrorBytes];
thread_local int threadDevice = -1;
char stickyError[kErrorBytes];
bool isSticky = false;

int32_t loadKernels() {
  for (KernelEntry* entry = KernelEntry::first; entry != nullptr; entry = entry->next) {
    GRANARY_TRY(check(loadKernel(entry->function), "loading kernels"));
  }
  return GRANARY_OK;
}

int32_t readDevice(int ordinal) {
  int* const targets[] = {&runtime.numMultiprocessors, &runtime.computeMajor, &runtime.computeMinor,
                          &runtime.sharedBytesPerBlock};
  const cudaDeviceAttr attributes[] = {cudaDevAttrMultiProcessorCount, cudaDevAttrComputeCapabilityMajor,
                                       cudaDevAttrComputeCapabilityMinor,
                                       cudaDevAttrMaxSharedMemoryPerBlockOptin};
  for (int i = 0; i < 4; ++i) {
    GRANARY_TRY(check(cudaDeviceGetAttribute(targets[i], attributes[i], ordinal), "device attributes"));
  }
  runtime.hasHopperKernels = runtime.computeMajor == 9 && runtime.computeMinor == 0 &&
                             std::getenv("GRANARY_PORTABLE_KERNELS") == nullptr;
  return GRANARY_OK;
}

int32_t acquire(const GranaryInit& args) {
  GRANARY_TRY(check(cudaSetDevice(args.deviceOrdinal), "selecting the device"));
  threadDevice = args.deviceOrdinal;
  runtime.deviceOrdinal = args.deviceOrdinal;
  runtime.debugChecks = args.debugChecks != 0;
  GRANARY_TRY(readDevice(args.deviceOrdinal));
  GRANARY_TRY(check(cudaStreamCreateWithFlags(&runtime.stream, cudaStreamNonBlocking), "compute stream"));
  runtime.workspaceBytes = args.workspaceBytes > 0 ? args.workspaceBytes : kDefaultWorkspaceBytes;
  GRANARY_TRY(check(cudaMalloc(&runtime.workspace, runtime.workspaceBytes), "workspace"));
  GRANARY_TRY(
      check(cudaHostAlloc(reinterpret_cast<void**>(&runtime.violation), sizeof(int32_t), cudaHostAllocMapped),
            "debug check word"));
  *runtime.violation = INT_MAX;
  GRANARY_TRY(openStaging());
  cudaDeviceProp properties;
  GRANARY_TRY(check(cudaGetDeviceProperties(&properties, args.deviceOrdinal), "device properties"));
  openProductChoice(properties.name);
  return loadKernels();
}

void release() {
  closeCublasLt();
  unloadAttention();
  closeStaging();
  if (runtime.violation != nullptr) cudaFreeHost(runtime.violation);
  if (runtime.workspace != nullptr) cudaFree(runtime.workspace);
  if (runtime.stream != nullptr) cudaStreamDestroy(runtime.stream);
  runtime = Runtime{};
  isSticky = false;
}

}  // namespace

cudaError_t loadKernel(const void* function) {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, function);
  if (error != cudaSuccess) return error;
  const int dynamicLimit = runtime.sharedBytesPerBlock - static_cast<int>(attributes.sharedSizeBytes);
  return cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamicLimit);
}

int32_t fail(GranaryStatus status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(lastError, kErrorBytes, format, arguments);
  va_end(arguments);
  return status;
}

int32_t check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return GRANARY_OK;
  cudaGetLastError();  // not sticky in the runtime: clear it, we keep our own record
  if (error == cudaErrorMemoryAllocation)
    return fail(GRANARY_OUT_OF_MEMORY, "%s: out of device memory", what);
  fail(GRANARY_DEVICE, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
  if (!isSticky) std::memcpy(stickyError, lastError, kErrorBytes);
  isSticky = true;
  return GRANARY_DEVICE;
}

int32_t enter() {
  if (!runtime.isInitialised) return fail(GRANARY_INVALID, "granary_init has not been called");
  if (isSticky) {
    std::memcpy(lastError, stickyError, kErrorBytes);
    return GRANARY_DEVICE;
  }
  if (*static_cast<volatile int32_t*>(runtime.violation) != INT_MAX) {
    fail(GRANARY_DEVICE, "a debug check found an id that is not allowed: %d", *runtime.violation);
    std::memcpy(stickyError, lastError, kErrorBytes);
    isSticky = true;
    return GRANARY_DEVICE;
  }
  if (threadDevice == runtime.deviceOrdinal) return GRANARY_OK;
  threadDevice = runtime.deviceOrdinal;
  return check(cudaSetDevice(runtime.deviceOrdinal), "selecting the device");
}

int32_t enterOutsideCapture(const char* what) {
  GRANARY_TRY(enter());
  return runtime.isCapturing ? fail(GRANARY_CAPTURE, "%s is not allowed inside a capture", what) : GRANARY_OK;
}

int32_t checkIds(const char* what, granary_address ids, int64_t count, int32_t low, int32_t high,
                 IdRange range) {
  if (!runtime.debugChecks || ids == 0 || count == 0) return GRANARY_OK;
  constexpr int kThreads = 256;
  const int64_t blocks = ceilDivide(count, kThreads);
  const CheckIdsParams params{pointer<int>(ids),           runtime.violation, count, low, high,
                              range == IdRange::kForbidden};
  return launch<checkIdsKernel>(what, dim3(blocks < 1024 ? blocks : 1024), kThreads, 0, params);
}

}  // namespace granary

using namespace granary;

extern "C" {

const char* granary_last_error(void) {
  return lastError;
}

int32_t granary_init(const GranaryInit* args) {
  GRANARY_REQUIRE(!runtime.isInitialised, "granary_init was called twice");
  GRANARY_REQUIRE(args->workspaceBytes >= 0, "workspaceBytes is negative");
  GRANARY_TRY(granary_probe(args->deviceOrdinal));
  const int32_t status = acquire(*args);
  if (status != GRANARY_OK) {
    release();
    return status;
  }
  runtime.isInitialised = true;
  return GRANARY_OK;
}

int32_t granary_shutdown(void) {
  GRANARY_REQUIRE(runtime.isInitialised, "granary_init has not been called");
  cudaStreamSynchronize(runtime.stream);
  cudaGetLastError();
  release();
  return GRANARY_OK;
}

}  // extern "C"
