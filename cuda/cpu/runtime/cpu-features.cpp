// Instruction sets: what the processor has and what the environment asks for.
#include "cpu-features.h"

#include <stdlib.h>
#include <string.h>

namespace granary {

namespace {

bool hasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool hasAvx512() {
  return hasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

Isa chooseIsa(const char** reason) {
  __builtin_cpu_init();
  if (!hasAvx2()) {
    *reason = "this processor lacks AVX2, FMA or F16C, which the CPU kernels need";
    return Isa::none;
  }
  const char* asked = getenv("GRANARY_CPU_ISA");
  if (asked == nullptr || *asked == '\0') return hasAvx512() ? Isa::avx512 : Isa::avx2;
  if (strcmp(asked, "avx2") == 0) return Isa::avx2;
  if (strcmp(asked, "avx512") == 0) {
    if (hasAvx512()) return Isa::avx512;
    *reason = "GRANARY_CPU_ISA asks for avx512, which this processor lacks";
    return Isa::none;
  }
  *reason = "GRANARY_CPU_ISA is neither avx2 nor avx512";
  return Isa::none;
}

const char* featuresOf(Isa isa) {
  switch (isa) {
    case Isa::avx512: return "avx2 fma f16c avx512f avx512bw avx512dq avx512vl";
    case Isa::avx2: return "avx2 fma f16c";
    default: return "";
  }
}

}  // namespace granary
