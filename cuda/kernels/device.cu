// What the library and the device say about themselves: ABI sizes, probing without initialising, device
// information.
#include <cstdio>
#include <cstring>

#include "cublaslt.h"
#include "runtime.h"

using namespace granary;

extern "C" {

int32_t granary_abi_version(void) {
  return GRANARY_ABI_VERSION;
}

int32_t granary_sizeof(int32_t op) {
  static constexpr int32_t sizes[] = {
      sizeof(GranaryInit),           sizeof(GranaryDeviceInfo),  sizeof(GranaryWeight),
      sizeof(GranarySynthesize),     sizeof(GranaryEmbedding),   sizeof(GranaryRmsNorm),
      sizeof(GranaryLinear),         sizeof(GranaryRopeTable),   sizeof(GranaryQkv),
      sizeof(GranaryAttention),      sizeof(GranaryGlu),         sizeof(GranaryMoeRoute),
      sizeof(GranaryMoeExperts),     sizeof(GranaryGatherRows),  sizeof(GranaryResolveTokens),
      sizeof(GranaryLogSoftmax),     sizeof(GranaryTopLogprobs), sizeof(GranarySample),
      sizeof(GranarySamplingParams), sizeof(GranaryCountTokens), sizeof(GranaryScatter),
      sizeof(GranaryZeroBlocks),     sizeof(GranaryCopyBlocks), sizeof(GranaryGatedLinear),
      sizeof(GranaryAttentionKernel),
  };
  constexpr int32_t count = sizeof(sizes) / sizeof(sizes[0]);
  static_assert(count == GRANARY_OP_ATTENTION_KERNEL + 1, "one size for every argument block");
  return op >= 0 && op < count ? sizes[op] : -1;
}

int32_t granary_probe(int32_t deviceOrdinal) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    int driver = 0;
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    if (driver == 0) return fail(GRANARY_UNSUPPORTED, "this machine has no NVIDIA driver");
    return fail(GRANARY_UNSUPPORTED,
                "no CUDA device: %s (driver supports CUDA %d.%d, this build needs %d.%d)",
                cudaGetErrorString(error), driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                CUDART_VERSION % 1000 / 10);
  }
  if (deviceOrdinal < 0 || deviceOrdinal >= count) {
    return fail(GRANARY_UNSUPPORTED, "no CUDA device %d: there are %d", deviceOrdinal, count);
  }
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, deviceOrdinal);
  if (major < 8) {
    return fail(GRANARY_UNSUPPORTED, "CUDA device %d has compute capability %d.x, 8.0 is needed",
                deviceOrdinal, major);
  }
  return GRANARY_OK;
}

int32_t granary_device_info(GranaryDeviceInfo* out) {
  GRANARY_TRY(enterOutsideCapture("granary_device_info"));
  std::memset(out, 0, sizeof(*out));
  cudaDeviceProp properties;
  size_t freeBytes = 0, totalBytes = 0;
  GRANARY_TRY(check(cudaGetDeviceProperties(&properties, runtime.deviceOrdinal), "device properties"));
  GRANARY_TRY(check(cudaMemGetInfo(&freeBytes, &totalBytes), "device memory"));
  GRANARY_TRY(check(cudaDriverGetVersion(&out->driverVersion), "driver version"));
  GRANARY_TRY(check(cudaRuntimeGetVersion(&out->runtimeVersion), "runtime version"));
  out->totalBytes = static_cast<int64_t>(totalBytes);
  out->freeBytes = static_cast<int64_t>(freeBytes);
  out->computeMajor = runtime.computeMajor;
  out->computeMinor = runtime.computeMinor;
  out->numMultiprocessors = runtime.numMultiprocessors;
  out->cublasLtVersion = cublasLtVersion();
  std::memcpy(out->name, properties.name, sizeof(out->name) - 1);  // cut, if ever longer than 127 bytes
  const bool isHopper = runtime.computeMajor == 9 && runtime.computeMinor == 0;
  std::snprintf(out->features, sizeof(out->features), "sm_%d%d%s", runtime.computeMajor, runtime.computeMinor,
                isHopper                    ? "a"
                : runtime.computeMajor == 8 ? ""
                                            : " ptx80");
  return GRANARY_OK;
}

}  // extern "C"
