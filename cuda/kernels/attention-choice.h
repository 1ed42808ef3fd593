// Which attention kernel a shape takes, with how many splits, and what scratch that needs.
//
// The choice depends on the bounds in the argument block alone, never on lengths, so that a recorded graph
// stays valid.
#pragma once
#include "runtime.h"

namespace granary {

enum class AttentionPath { kScalar, kDecode, kPrefill, kHopperDecode, kHopperPrefill };

struct AttentionChoice {
  AttentionPath path;
  int32_t paddedDim;  // 64, 128, 192 or 256: of the kernels compiled ahead of time
  int32_t exactDim;   // of those compiled at run time
  int32_t tileRows;
  int32_t numTiles;   // a sequence and KV head
  int32_t numSplits;  // 1 where the merge kernel has nothing to do
  int32_t numGroups;  // of blocks of the persistent decode kernel
  int32_t minSplitKeys;
  int64_t partialRows;  // of partial results that the launch can leave
};

AttentionChoice chooseAttention(const GranaryAttention& args);

// Rows of partial results for these bounds and for every smaller shape.
int64_t boundOfPartialRows(const GranaryAttention& args);

// The wider of the two head dimensions.
int32_t widerDimOf(const GranaryAttention& args);

// True when every row of K and V can be moved 16 bytes at a time.
bool cachesAreWide(const GranaryAttention& args);

// Shared memory that a block may ask for.
int32_t attentionSharedLimit();

}  // namespace granary
