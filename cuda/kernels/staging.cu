// The page-locked ring: parts that are filled one after another, each free again when the event behind its
// last copy has passed. Waits only when uploads are a whole ring ahead of the device.
#include "staging.h"

#include <cstring>

namespace granary {

namespace {

constexpr int kNumParts = 8;
constexpr int64_t kPartBytes = kMaxStagedBytes;
constexpr int64_t kAlignment = 256;

char* ring = nullptr;
cudaEvent_t partDone[kNumParts];
int part = 0;
int64_t used = 0;  // of the part being filled

// Ends the part being filled and waits for the oldest one.
int32_t nextPart() {
  GRANARY_TRY(check(cudaEventRecord(partDone[part], runtime.stream), "staging ring"));
  part = (part + 1) % kNumParts;
  used = 0;
  return check(cudaEventSynchronize(partDone[part]), "staging ring");
}

}  // namespace

int32_t openStaging() {
  void* memory = nullptr;
  GRANARY_TRY(
      check(cudaHostAlloc(&memory, kNumParts * kPartBytes, cudaHostAllocDefault), "staging ring"));
  ring = static_cast<char*>(memory);
  for (cudaEvent_t& event : partDone) {
    event = nullptr;
    GRANARY_TRY(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "staging ring"));
  }
  part = 0;
  used = 0;
  return GRANARY_OK;
}

void closeStaging() {
  if (ring == nullptr) return;
  for (cudaEvent_t& event : partDone) {
    if (event != nullptr) cudaEventDestroy(event);
    event = nullptr;
  }
  cudaFreeHost(ring);
  ring = nullptr;
}

int32_t stageUpload(void* destination, const void* source, int64_t bytes) {
  if (used + bytes > kPartBytes) GRANARY_TRY(nextPart());
  char* staged = ring + part * kPartBytes + used;
  used += alignUp(bytes, kAlignment);
  std::memcpy(staged, source, bytes);
  return check(cudaMemcpyAsync(destination, staged, bytes, cudaMemcpyHostToDevice, runtime.stream),
               "granary_copy");
}

}  // namespace granary
