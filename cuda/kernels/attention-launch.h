// Launchers of the bf16 attention kernels. Their instances live in attention-<dim>.cu, one file a padded head
// dimension.
#pragma once
#include <cuda_runtime.h>

#include "attention-hopper-decode.cuh"
#include "attention-hopper-prefill.cuh"
#include "attention-params.cuh"

namespace granary {

constexpr int32_t kDecodeTileRows = 16;
constexpr int32_t kPrefillTileRows = 64;
constexpr int32_t kAheadMaxDim = 256;  // head dimension up to which every kernel is compiled ahead of time

template <int kDim>
struct AttentionInstances {
  static int32_t decode(dim3 grid, int32_t sharedLimit, const AttentionParams& params);
  static int32_t prefill(dim3 grid, const AttentionParams& params);
  static int32_t hopperDecode(const HopperDecodeParams& params);
  static int32_t hopperPrefill(dim3 grid, const HopperPrefillParams& params);
};

}  // namespace granary
