// State of the initialised library: which kernels run, on how many threads, and with what verification.
#pragma once
#include <stdint.h>

#include "cpu-features.h"

namespace granary {

struct Kernels;

bool isInitialised();
// True when operands are verified where that costs time.
bool verifies();
// The kernels compiled for this machine. Only valid while initialised.
const Kernels& kernels();
int32_t numThreads();
// The instruction set that init chose; `none` while not initialised.
Isa activeIsa();
// Memory of one computing thread for packed operands, kept from init to shutdown; `thread` counts from 0.
struct Workspace {
  char* memory;
  int64_t bytes;
};
Workspace workspaceOf(int32_t thread);

}  // namespace granary
