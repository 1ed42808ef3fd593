// What every kernel file needs: the lanes, the reductions, the pool, and the declarations of its own
// instruction set.
#pragma once
#include "../runtime/library.h"
#include "../runtime/thread-pool.h"
#include "../simd/math.h"
#include "../simd/reduce.h"
#include "../simd/rows.h"
#include "../simd/vec16.h"
#include "kernels.h"

namespace granary::GRANARY_ISA {

void prepareWeight(const GranaryWeight& args);
void synthesize(const GranarySynthesize& args);
void embedding(const GranaryEmbedding& args);
void gatherRows(const GranaryGatherRows& args);
void rmsNorm(const GranaryRmsNorm& args);
void linear(const GranaryLinear& args);
void ropeTable(const GranaryRopeTable& args);
void qkv(const GranaryQkv& args);
int64_t attentionScratchBytes(const GranaryAttention& args);
void attention(const GranaryAttention& args);
void glu(const GranaryGlu& args);
void gatedLinear(const GranaryGatedLinear& args);
void moeRoute(const GranaryMoeRoute& args);
int64_t moeScratchBytes(const GranaryMoeExperts& args);
void moeExperts(const GranaryMoeExperts& args);
void logSoftmax(const GranaryLogSoftmax& args);
void topLogprobs(const GranaryTopLogprobs& args);
int64_t sampleScratchBytes(const GranarySample& args);
void sample(const GranarySample& args);

template <typename T>
GRANARY_INLINE T* at(granary_address address) {
  return reinterpret_cast<T*>(address);
}

GRANARY_INLINE int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace granary::GRANARY_ISA
