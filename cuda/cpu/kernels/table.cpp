// The kernels of one instruction set.
#include "kernel.h"

namespace granary::GRANARY_ISA {

const Kernels kernelTable = {
    .prepareWeight = prepareWeight,
    .synthesize = synthesize,
    .embedding = embedding,
    .gatherRows = gatherRows,
    .rmsNorm = rmsNorm,
    .linear = linear,
    .ropeTable = ropeTable,
    .qkv = qkv,
    .attentionScratchBytes = attentionScratchBytes,
    .attention = attention,
    .glu = glu,
    .gatedLinear = gatedLinear,
    .moeRoute = moeRoute,
    .moeScratchBytes = moeScratchBytes,
    .moeExperts = moeExperts,
    .logSoftmax = logSoftmax,
    .topLogprobs = topLogprobs,
    .sampleScratchBytes = sampleScratchBytes,
    .sample = sample,
};

}  // namespace granary::GRANARY_ISA
