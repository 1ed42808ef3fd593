// Probe, init and shutdown: one state a process, which may be initialised again after a shutdown.
#include "library.h"

#include <sys/mman.h>

#include "../kernels/kernels.h"
#include "cpu-features.h"
#include "error.h"
#include "export.h"
#include "thread-pool.h"

namespace granary {

namespace {

constexpr int32_t kMaxThreads = 1024;
// A product packs less than 1 MiB (product.cpp).
constexpr int64_t kDefaultWorkspaceBytes = 1 << 20;
constexpr int64_t kMinWorkspaceBytes = 256 << 10;
constexpr int64_t kHugePageBytes = 2 << 20;

struct State {
  const Kernels* kernels = nullptr;
  Isa isa = Isa::none;
  bool verifies = false;
  int32_t numThreads = 0;
  void* memory = nullptr;  // what was mapped for all workspaces
  int64_t memoryBytes = 0;
  char* workspaces = nullptr;
  int64_t workspaceBytes = 0;  // of one thread
};

State state;

const Kernels* kernelsOf(Isa isa) { return isa == Isa::avx512 ? &avx512::kernelTable : &avx2::kernelTable; }

int64_t workspaceBytesOf(const GranaryInit& args) {
  if (args.workspaceBytes == 0) return kDefaultWorkspaceBytes;
  const int64_t share = args.workspaceBytes / args.numThreads / 4096 * 4096;
  return share < kMinWorkspaceBytes ? kMinWorkspaceBytes : share;
}

int32_t checkInit(const GranaryInit* args) {
  if (args == nullptr) return fail(GRANARY_INVALID, "init", "the argument block is null");
  if (isInitialised()) return fail(GRANARY_INVALID, "init", "the library is initialised already");
  if (args->deviceOrdinal != 0) {
    return fail(GRANARY_INVALID, "init", "deviceOrdinal is %d, the CPU library has device 0 only",
                args->deviceOrdinal);
  }
  if (args->numThreads < 1 || args->numThreads > kMaxThreads) {
    return fail(GRANARY_INVALID, "init", "numThreads is %d, it must be in [1, %d]", args->numThreads,
                kMaxThreads);
  }
  if (args->workspaceBytes < 0) return fail(GRANARY_INVALID, "init", "workspaceBytes is negative");
  return GRANARY_OK;
}

}  // namespace

bool isInitialised() { return state.kernels != nullptr; }
bool verifies() { return state.verifies; }
const Kernels& kernels() { return *state.kernels; }
int32_t numThreads() { return state.numThreads; }
Isa activeIsa() { return state.isa; }
Workspace workspaceOf(int32_t thread) {
  return {state.workspaces + thread * state.workspaceBytes, state.workspaceBytes};
}

}  // namespace granary

using namespace granary;

GRANARY_EXPORT int32_t granary_abi_version(void) { return GRANARY_ABI_VERSION; }

GRANARY_EXPORT int32_t granary_probe(int32_t deviceOrdinal) {
  if (deviceOrdinal != 0) {
    return fail(GRANARY_UNSUPPORTED, "probe", "deviceOrdinal is %d, the CPU library has device 0 only",
                deviceOrdinal);
  }
  const char* reason = "";
  if (chooseIsa(&reason) == Isa::none) return fail(GRANARY_UNSUPPORTED, "probe", "%s", reason);
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_init(const GranaryInit* args) {
  const int32_t status = checkInit(args);
  if (status != GRANARY_OK) return status;
  const char* reason = "";
  const Isa isa = chooseIsa(&reason);
  if (isa == Isa::none) return fail(GRANARY_UNSUPPORTED, "init", "%s", reason);
  const int64_t bytes = workspaceBytesOf(*args);
  // Aligned to huge pages, because packed rows are walked in strides that would miss in the page tables.
  const int64_t memoryBytes = bytes * args->numThreads + kHugePageBytes;
  void* memory = mmap(nullptr, static_cast<size_t>(memoryBytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(GRANARY_OUT_OF_MEMORY, "init", "no room for a workspace of %lld bytes a thread",
                static_cast<long long>(bytes));
  madvise(memory, static_cast<size_t>(memoryBytes), MADV_HUGEPAGE);
  if (!startThreads(args->numThreads)) {
    munmap(memory, static_cast<size_t>(memoryBytes));
    return fail(GRANARY_OUT_OF_MEMORY, "init", "%d threads could not be started", args->numThreads - 1);
  }
  const uint64_t aligned =
      (reinterpret_cast<uint64_t>(memory) + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  state = {
      .kernels = kernelsOf(isa),
      .isa = isa,
      .verifies = args->debugChecks != 0,
      .numThreads = args->numThreads,
      .memory = memory,
      .memoryBytes = memoryBytes,
      .workspaces = reinterpret_cast<char*>(aligned),
      .workspaceBytes = bytes,
  };
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_open_cublaslt(const char*) {
  return fail(GRANARY_UNSUPPORTED, "open_cublaslt", "the CPU library has products of its own");
}

GRANARY_EXPORT int32_t granary_shutdown(void) {
  if (!isInitialised()) return fail(GRANARY_INVALID, "shutdown", "granary_init has not been called");
  stopThreads();
  munmap(state.memory, static_cast<size_t>(state.memoryBytes));
  state = State{};
  return GRANARY_OK;
}
