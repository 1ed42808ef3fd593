// The part of cuBLASLt's C interface that we use, declared by hand: its header exists only in a full toolkit.
// Numeric values are those of CUDA 12 and 13.
#pragma once
#include <cstddef>
#include <cstdint>

namespace granary {

using LtHandle = void*;
using LtMatmulDesc = void*;
using LtMatrixLayout = void*;
using LtPreference = void*;

struct LtAlgo {
  uint64_t data[8];
};
struct LtHeuristicResult {
  LtAlgo algo;
  size_t workspaceBytes;
  int32_t state;
  float wavesCount;
  int32_t reserved[4];
};
static_assert(sizeof(LtHeuristicResult) == 96, "cublasLtMatmulHeuristicResult_t");

enum : int32_t {
  kLtNotSupported = 15,  // a status
  kLtDataF32 = 0,
  kLtDataBf16 = 14,
  kLtComputeF32 = 68,  // CUBLAS_COMPUTE_32F: float32 products stay float32, no TF32
  kLtTransposed = 1,
  kLtDescTransposeA = 3,
  kLtDescEpilogue = 7,
  kLtDescBiasPointer = 8,
  kLtDescBiasDataType = 26,
  kLtEpilogueBias = 4,
  kLtLayoutColumns = 3,
  kLtPreferenceWorkspaceBytes = 1,
  kLtPreferenceReductionSchemes = 3,
  kLtReductionComputeType = 2,
  kLtPreferenceAlignmentA = 5,  // then B, C, D
};

struct LtApi {
  int32_t (*create)(LtHandle*);
  int32_t (*destroy)(LtHandle);
  size_t (*getVersion)();
  int32_t (*matmulDescCreate)(LtMatmulDesc*, int32_t computeType, int32_t scaleType);
  int32_t (*matmulDescDestroy)(LtMatmulDesc);
  int32_t (*matmulDescSetAttribute)(LtMatmulDesc, int32_t attribute, const void* value, size_t bytes);
  int32_t (*matrixLayoutCreate)(LtMatrixLayout*, int32_t type, uint64_t rows, uint64_t columns, int64_t ld);
  int32_t (*matrixLayoutDestroy)(LtMatrixLayout);
  int32_t (*matrixLayoutSetAttribute)(LtMatrixLayout, int32_t attribute, const void* value, size_t bytes);
  int32_t (*preferenceCreate)(LtPreference*);
  int32_t (*preferenceDestroy)(LtPreference);
  int32_t (*preferenceSetAttribute)(LtPreference, int32_t attribute, const void* value, size_t bytes);
  int32_t (*getHeuristic)(LtHandle, LtMatmulDesc, LtMatrixLayout a, LtMatrixLayout b, LtMatrixLayout c,
                          LtMatrixLayout d, LtPreference, int32_t requested, LtHeuristicResult*,
                          int32_t* found);
  int32_t (*matmul)(LtHandle, LtMatmulDesc, const void* alpha, const void* a, LtMatrixLayout, const void* b,
                    LtMatrixLayout, const void* beta, const void* c, LtMatrixLayout, void* d, LtMatrixLayout,
                    const LtAlgo*, void* workspace, size_t workspaceBytes, void* stream);
};

}  // namespace granary
