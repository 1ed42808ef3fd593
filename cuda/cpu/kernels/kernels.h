// The table of kernels that each instruction set fills. Arguments are checked before a kernel is called.
#pragma once
#include "../../include/granary.h"

namespace granary {

struct Kernels {
  void (*prepareWeight)(const GranaryWeight&);
  void (*synthesize)(const GranarySynthesize&);
  void (*embedding)(const GranaryEmbedding&);
  void (*gatherRows)(const GranaryGatherRows&);
  void (*rmsNorm)(const GranaryRmsNorm&);
  void (*linear)(const GranaryLinear&);
  void (*ropeTable)(const GranaryRopeTable&);
  void (*qkv)(const GranaryQkv&);
  int64_t (*attentionScratchBytes)(const GranaryAttention&);
  void (*attention)(const GranaryAttention&);
  void (*glu)(const GranaryGlu&);
  void (*gatedLinear)(const GranaryGatedLinear&);
  void (*moeRoute)(const GranaryMoeRoute&);
  int64_t (*moeScratchBytes)(const GranaryMoeExperts&);
  void (*moeExperts)(const GranaryMoeExperts&);
  void (*logSoftmax)(const GranaryLogSoftmax&);
  void (*topLogprobs)(const GranaryTopLogprobs&);
  int64_t (*sampleScratchBytes)(const GranarySample&);
  void (*sample)(const GranarySample&);
};

// Largest head dimension and largest number of chosen experts; the kernels keep such rows on the stack.
constexpr int32_t kMaxHeadDim = 1024;
constexpr int32_t kMaxTopExperts = 64;
// Largest k of top_logprobs and of a kept selection on the stack.
constexpr int32_t kMaxTopLogprobs = 1024;

namespace avx2 {
extern const Kernels kernelTable;
}
namespace avx512 {
extern const Kernels kernelTable;
}

}  // namespace granary
