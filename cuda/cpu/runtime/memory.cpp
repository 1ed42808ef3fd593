// Device memory: zero pages from the system, given back by address. Pinned memory is the same thing here.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <mutex>
#include <unordered_map>

#include "check.h"
#include "export.h"

namespace granary {

namespace {

constexpr int64_t kHugePageBytes = 2 << 20;

std::mutex mutex;
std::unordered_map<granary_address, size_t> bytesByAddress;

void* allocate(const char* op, int64_t bytes) {
  Check check(op, &bytes);
  check.atLeast("bytes", bytes, 1);
  if (check.failed()) return nullptr;
  const size_t size = static_cast<size_t>(bytes);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fail(GRANARY_OUT_OF_MEMORY, op, "%lld bytes are not to be had", static_cast<long long>(bytes));
    return nullptr;
  }
  // Weights and arenas are walked in large strides; a hint, so a refusal does not matter.
  if (bytes >= kHugePageBytes) madvise(memory, size, MADV_HUGEPAGE);
  const std::lock_guard lock(mutex);
  bytesByAddress.emplace(reinterpret_cast<granary_address>(memory), size);
  return memory;
}

int32_t release(const char* op, granary_address address) {
  size_t bytes = 0;
  {
    const std::lock_guard lock(mutex);
    const auto found = bytesByAddress.find(address);
    if (found == bytesByAddress.end()) return fail(GRANARY_INVALID, op, "address was not allocated here");
    bytes = found->second;
    bytesByAddress.erase(found);
  }
  munmap(reinterpret_cast<void*>(address), bytes);
  return GRANARY_OK;
}

}  // namespace

}  // namespace granary

using namespace granary;

GRANARY_EXPORT void* granary_alloc(int64_t bytes) { return allocate("alloc", bytes); }
GRANARY_EXPORT int32_t granary_free(granary_address address) { return release("free", address); }
GRANARY_EXPORT void* granary_alloc_pinned(int64_t bytes) { return allocate("alloc_pinned", bytes); }
GRANARY_EXPORT int32_t granary_free_pinned(granary_address address) {
  return release("free_pinned", address);
}

GRANARY_EXPORT int32_t granary_copy(granary_address destination, granary_address source, int64_t bytes,
                                    int32_t kind) {
  Check check("copy", &bytes);
  check.atLeast("bytes", bytes, 0);
  check.that(kind >= GRANARY_HOST_TO_DEVICE && kind <= GRANARY_DEVICE_TO_DEVICE, "kind",
             "is no GranaryCopyKind");
  if (bytes > 0) {
    check.present("destination", destination);
    check.present("source", source);
  }
  if (check.failed()) return check.status();
  memmove(reinterpret_cast<void*>(destination), reinterpret_cast<const void*>(source),
          static_cast<size_t>(bytes));
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_synchronize(void) { return Check("synchronize", &mutex).status(); }
