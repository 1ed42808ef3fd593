// Which instruction sets of this machine the kernels may use.
#pragma once

namespace granary {

enum class Isa { none, avx2, avx512 };

// The set to run: the best one, or the one that GRANARY_CPU_ISA asks for. On `none`, `reason` says why in one
// line.
Isa chooseIsa(const char** reason);

// Names as granary_device_info lists them.
const char* featuresOf(Isa isa);

}  // namespace granary
