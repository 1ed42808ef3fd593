// Definitions behind attention-launch.h; only the attention-<dim>.cu files include this.
#pragma once
#include "attention-launch.h"
#include "paged-decode.cuh"
#include "paged-prefill.cuh"
#include "runtime.h"

namespace granary {

static_assert(kDecodeRows == kDecodeTileRows && kPrefillRows == kPrefillTileRows,
              "tile rows of kernels and launchers");

template <int kDim>
int32_t AttentionInstances<kDim>::decode(dim3 grid, int32_t sharedLimit, const AttentionParams& p) {
  constexpr int kThreads = kDecodeWarps * kWarpSize;
  constexpr int kDeep = DecodeShape<kDim, 3>::kSharedBytes, kShallow = DecodeShape<kDim, 2>::kSharedBytes;
  if (kDeep <= sharedLimit) return launch<pagedDecodeKernel<kDim, 3>>("attention", grid, kThreads, kDeep, p);
  return launch<pagedDecodeKernel<kDim, 2>>("attention", grid, kThreads, kShallow, p);
}

template <int kDim>
int32_t AttentionInstances<kDim>::prefill(dim3 grid, const AttentionParams& p) {
  return launch<pagedPrefillKernel<kDim>>("attention", grid, kPrefillThreads,
                                          PrefillShape<kDim>::kSharedBytes, p);
}

template <int kDim>
int32_t AttentionInstances<kDim>::hopperDecode(const HopperDecodeParams& params) {
  return launchEarly<hopperDecodeKernel<kDim>>("attention", dim3(params.numGroups * params.p.numKvHeads),
                                               kHopperDecodeThreads, HopperDecodeShape<kDim>::kSharedBytes,
                                               params);
}

template <int kDim>
int32_t AttentionInstances<kDim>::hopperPrefill(dim3 grid, const HopperPrefillParams& params) {
  constexpr int kNarrow = hopperPrefillValueDim(kDim, 1);
  if (params.p.vHeadDim <= kNarrow) {
    return launchEarly<hopperPrefillKernel<kDim, kNarrow>>(
        "attention", grid, kHopperPrefillThreads, HopperPrefillShape<kDim, kNarrow>::kSharedBytes, params);
  }
  return launchEarly<hopperPrefillKernel<kDim>>("attention", grid, kHopperPrefillThreads,
                                                HopperPrefillShape<kDim>::kSharedBytes, params);
}

}  // namespace granary
