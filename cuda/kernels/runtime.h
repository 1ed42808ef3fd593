// What the host side of the CUDA library shares: its one state, the entry check of every exported function,
// and kernel launches. Not a device source: NVRTC never sees it.
#pragma once
#include <cuda_runtime.h>

#include "../include/granary.h"
#include "numeric.cuh"

namespace granary {

struct Runtime {
  bool isInitialised = false;
  bool isCapturing = false;
  bool debugChecks = false;
  int deviceOrdinal = 0;
  int numMultiprocessors = 0;
  int sharedBytesPerBlock = 0;  // at most, with the opt-in
  int computeMajor = 0;
  int computeMinor = 0;
  // The copy engine and warpgroup instructions are compute capability 9.0's alone. GRANARY_PORTABLE_KERNELS
  // in the environment leaves them out, so that a test on such a card reaches the portable kernels too.
  bool hasHopperKernels = false;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  int64_t workspaceBytes = 0;
  int32_t* violation =
      nullptr;  // page-locked; a debug check on the device writes the id that broke a rule, else INT32_MAX
};
extern Runtime runtime;

// Records one line of text for the calling thread and gives the status back.
__attribute__((format(printf, 2, 3))) int32_t fail(GranaryStatus status, const char* format, ...);

// Loads a kernel's module and lets it use all the shared memory that a block can have.
cudaError_t loadKernel(const void* function);

// Status of a CUDA call: an error that is not a plain shortage of memory is sticky from here on.
int32_t check(cudaError_t error, const char* what);

// Every exported function starts here: initialised, no sticky error, this thread on our device.
int32_t enter();
// The same for functions that may not run between capture begin and end.
int32_t enterOutsideCapture(const char* what);

// A kernel that granary_init loads, so that its first launch inside a capture loads no module.
struct KernelEntry {
  const void* function;
  KernelEntry* next;
  static KernelEntry* first;
  explicit KernelEntry(const void* kernel) : function(kernel), next(first) { first = this; }
};
template <auto kKernel>
struct Registered {
  inline static KernelEntry entry{reinterpret_cast<const void*>(kKernel)};
};

// Enqueues a kernel, or the handle of a loaded one, on the compute stream.
template <typename Params>
int32_t launchFunction(const void* function, const char* what, dim3 grid, int threads, size_t sharedBytes,
                       const Params& params) {
  void* arguments[] = {const_cast<Params*>(&params)};
  return check(cudaLaunchKernel(function, grid, dim3(threads), arguments, sharedBytes, runtime.stream), what);
}

// The same for kKernel; naming it here also registers it.
template <auto kKernel, typename Params>
int32_t launch(const char* what, dim3 grid, int threads, size_t sharedBytes, const Params& params) {
  return launchFunction(Registered<kKernel>::entry.function, what, grid, threads, sharedBytes, params);
}

// The same for a kernel that calls waitForPrevious: it may start before its predecessor ends. Only code built
// for compute capability 9.0 waits, so only there it is allowed to.
template <auto kKernel, typename Params>
int32_t launchEarly(const char* what, dim3 grid, int threads, size_t sharedBytes, const Params& params) {
  if (runtime.computeMajor != 9) return launch<kKernel>(what, grid, threads, sharedBytes, params);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = sharedBytes;
  config.stream = runtime.stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* arguments[] = {const_cast<Params*>(&params)};
  return check(cudaLaunchKernelExC(&config, Registered<kKernel>::entry.function, arguments), what);
}

template <typename T>
T* pointer(granary_address address) {
  return reinterpret_cast<T*>(address);
}

inline int64_t ceilDivide(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}
inline int64_t alignUp(int64_t value, int64_t to) {
  return ceilDivide(value, to) * to;
}
inline bool isFloat(int32_t dtype) {
  return dtype == GRANARY_F32 || dtype == GRANARY_BF16;
}
inline int32_t bytesOf(int32_t dtype) {
  return dtype == GRANARY_F32 || dtype == GRANARY_I32 ? 4 : 2;
}

// Calls `visit` with a value of the element type that `dtype`, f32 or bf16, names.
template <typename Visitor>
int32_t withFloat(int32_t dtype, Visitor visit) {
  return dtype == GRANARY_F32 ? visit(float{}) : visit(Bf16{});
}

// True when rows of `columns` elements can be moved 16 bytes at a time.
inline bool isWide(granary_address address, int64_t stride, int64_t columns) {
  return address % 16 == 0 && stride % 8 == 0 && columns % 8 == 0;
}

// With debug checks on: every id of the device array has to lie in [low, high), or has to stay out of it. A
// breach surfaces in later calls.
enum class IdRange { kRequired, kForbidden };
int32_t checkIds(const char* what, granary_address ids, int64_t count, int32_t low, int32_t high,
                 IdRange range = IdRange::kRequired);

}  // namespace granary

// Returns from the exported function when `status` is not 0.
#define GRANARY_TRY(expression)            \
  do {                                     \
    const int32_t tried = (expression);    \
    if (tried != GRANARY_OK) return tried; \
  } while (0)

#define GRANARY_REQUIRE(condition, ...)                                   \
  do {                                                                    \
    if (!(condition)) return granary::fail(GRANARY_INVALID, __VA_ARGS__); \
  } while (0)
