// Tensor core and copy primitives of compute capability 8.0, as inline PTX: bf16 fragments, asynchronous
// 16-byte copies, and the shared-memory layout both use.
#pragma once
#include "numeric.cuh"

constexpr int kChunkElements = 8;  // 16 bytes of bf16: the unit of copies and of matrix rows
constexpr int kChunkBytes = 16;

__device__ __forceinline__ unsigned sharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Chunks from one row of a tile to the next, where each has `chunks`. Eight rows of one column, which a
// matrix load reads at once, must lie in different banks: whole groups of eight chunks are permuted by the
// row's number, and any other row begins an odd number of chunks behind the last.
constexpr int chunksOfTileRow(int chunks) {
  return chunks % 8 == 0 ? chunks : chunks | 1;
}

template <int kRowChunks>
struct TileRow {
  static constexpr int kChunks = chunksOfTileRow(kRowChunks);
};

// Byte offset of a chunk in a tile whose rows have kChunks chunks.
template <int kChunks>
__device__ __forceinline__ unsigned tileOffset(int row, int chunk) {
  if constexpr (kChunks % 8 == 0) {
    return (row * kChunks + (chunk ^ (row & 7))) * kChunkBytes;
  } else {
    return (row * TileRow<kChunks>::kChunks + chunk) * kChunkBytes;
  }
}

// ---- copies -------------------------------------------------------------------------------------------

// Copies 16 bytes from global to shared memory, or writes zeros where `isThere` is false (the source is not
// read then).
__device__ __forceinline__ void copyChunkAsync(unsigned destination, const void* source, bool isThere) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(destination), "l"(source),
               "r"(isThere ? kChunkBytes : 0)
               : "memory");
}
__device__ __forceinline__ void commitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most kPending groups of this thread's copies are unfinished.
template <int kPending>
__device__ __forceinline__ void waitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Has `bytes`, a multiple of 16, brought to the L2 cache.
__device__ __forceinline__ void prefetchToL2(const void* source, int bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(bytes) : "memory");
#endif
}

__device__ __forceinline__ void loadChunk(uint4& chunk, unsigned address) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
               : "r"(address)
               : "memory");
}

// ---- fragments ----------------------------------------------------------------------------------------

// Four 8x8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void loadMatrices(unsigned (&registers)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void loadMatricesTransposed(unsigned (&registers)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(address)
               : "memory");
}

// d += a * b: a is 16 x 16, b is 16 x 8, d is 16 x 8; lane l holds d[l / 4][l % 4 * 2 + {0, 1}] and the same
// of row l / 4 + 8.
__device__ __forceinline__ void multiplyAdd(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
