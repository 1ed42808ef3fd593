// Sizes of the argument blocks, by the numbers of the ABI.
#include "../../include/granary.h"
#include "export.h"

GRANARY_EXPORT int32_t granary_sizeof(int32_t op) {
  switch (op) {
    case GRANARY_OP_INIT: return sizeof(GranaryInit);
    case GRANARY_OP_DEVICE_INFO: return sizeof(GranaryDeviceInfo);
    case GRANARY_OP_WEIGHT: return sizeof(GranaryWeight);
    case GRANARY_OP_SYNTHESIZE: return sizeof(GranarySynthesize);
    case GRANARY_OP_EMBEDDING: return sizeof(GranaryEmbedding);
    case GRANARY_OP_RMS_NORM: return sizeof(GranaryRmsNorm);
    case GRANARY_OP_LINEAR: return sizeof(GranaryLinear);
    case GRANARY_OP_ROPE_TABLE: return sizeof(GranaryRopeTable);
    case GRANARY_OP_QKV: return sizeof(GranaryQkv);
    case GRANARY_OP_ATTENTION: return sizeof(GranaryAttention);
    case GRANARY_OP_GLU: return sizeof(GranaryGlu);
    case GRANARY_OP_MOE_ROUTE: return sizeof(GranaryMoeRoute);
    case GRANARY_OP_MOE_EXPERTS: return sizeof(GranaryMoeExperts);
    case GRANARY_OP_GATHER_ROWS: return sizeof(GranaryGatherRows);
    case GRANARY_OP_RESOLVE_TOKENS: return sizeof(GranaryResolveTokens);
    case GRANARY_OP_LOG_SOFTMAX: return sizeof(GranaryLogSoftmax);
    case GRANARY_OP_TOP_LOGPROBS: return sizeof(GranaryTopLogprobs);
    case GRANARY_OP_SAMPLE: return sizeof(GranarySample);
    case GRANARY_OP_SAMPLING_PARAMS: return sizeof(GranarySamplingParams);
    case GRANARY_OP_COUNT_TOKENS: return sizeof(GranaryCountTokens);
    case GRANARY_OP_SCATTER: return sizeof(GranaryScatter);
    case GRANARY_OP_ZERO_BLOCKS: return sizeof(GranaryZeroBlocks);
    case GRANARY_OP_COPY_BLOCKS: return sizeof(GranaryCopyBlocks);
    case GRANARY_OP_GATED_LINEAR: return sizeof(GranaryGatedLinear);
    case GRANARY_OP_ATTENTION_KERNEL: return sizeof(GranaryAttentionKernel);
    default: return -1;
  }
}
