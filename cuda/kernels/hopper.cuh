// Copy engine, barrier and warpgroup primitives of compute capability 9.0, as inline PTX. Only kernels behind
// __CUDA_ARCH_FEAT_SM90_ALL may use them.
#pragma once
#include "matrix.cuh"

// A tensor map as the driver encodes it: opaque, passed by value in kernel parameters.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

constexpr int kSwizzleRowBytes = 128;  // one row of a swizzled tile: 64 bf16
constexpr int kSwizzleAlignment = 1024;

// ---- barriers in shared memory ------------------------------------------------------------------------

__device__ __forceinline__ void initBarrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes initialised barriers visible to the copy engine; a block barrier has to follow.
__device__ __forceinline__ void publishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void arriveExpecting(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Waits until the phase of the given parity is complete.
__device__ __forceinline__ void waitBarrier(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred isDone;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 isDone, [%0], %1;\n"
      "@!isDone bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
// A word in shared memory, read for its warp by the lane that arrives for it. In PTX, since a compiler may
// let every lane read, and race checkers know the order of barriers only for threads that arrive themselves.
__device__ __forceinline__ unsigned readByLeader(unsigned address, bool leads) {
  unsigned word = 0;
  if (leads) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return __shfl_sync(kFullWarp, word, 0);
}
// Waits for, or only joins, `threads` threads at one of the sixteen named barriers; 0 belongs to the block.
__device__ __forceinline__ void waitNamedBarrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void arriveNamedBarrier(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// A place in a ring of stages: which stage, and the parity of its barriers in this round.
struct RingPlace {
  int stage = 0;
  unsigned parity = 0;
};
template <int kStages>
__device__ __forceinline__ void advance(RingPlace& place) {
  if (++place.stage == kStages) {
    place.stage = 0;
    place.parity ^= 1;
  }
}

// ---- copies -------------------------------------------------------------------------------------------

__device__ __forceinline__ void prefetchTensorMap(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
// Copies the box at the given coordinates, innermost first; what lies outside the tensor arrives as zeros.
__device__ __forceinline__ void copyBox(unsigned destination, const TensorMap* map, int dim, int head,
                                        int row, int page, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
      "%5}], [%6];" ::"r"(destination),
      "l"(map), "r"(dim), "r"(head), "r"(row), "r"(page), "r"(barrier)
      : "memory");
}
// The same for a matrix: the box at (column, row).
__device__ __forceinline__ void copyMatrixBox(unsigned destination, const TensorMap* map, int column, int row,
                                              unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(destination),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
// Orders this thread's ordinary accesses to shared memory before later ones of the copy engine and the tensor
// cores.
__device__ __forceinline__ void fenceAsyncProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- warpgroups ---------------------------------------------------------------------------------------

constexpr int kWarpgroupThreads = 128;

template <int kRegisters>
__device__ __forceinline__ void raiseRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void lowerRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
__device__ __forceinline__ void beginProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most kPending committed groups are unfinished.
template <int kPending>
__device__ __forceinline__ void waitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Describes an operand in shared memory, in tiles of 128-byte rows swizzled by eights: eight rows are
// kSwizzleAlignment bytes; `columnStride` leads to the next 64 columns of an operand that is not transposed.
__device__ __forceinline__ unsigned long long describeTile(unsigned address, unsigned columnStride) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  constexpr unsigned long long kRowStride = static_cast<unsigned long long>(kSwizzleAlignment >> 4) << 32;
  return kSwizzle128 | kRowStride | static_cast<unsigned long long>(columnStride >> 4) << 16 |
         (address & 0x3ffff) >> 4;
}
