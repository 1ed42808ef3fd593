// Matrix instructions of a warpgroup for attention: 64 rows at a time, bf16 operands, f32 sums. Lane l of
// warp w owns rows 16 w + l / 4 (values 0 and 1 of a column of eight) and 8 below (values 2 and 3), columns
// l % 4 * 2 and the next. Nothing here waits: see beginProducts, commitProducts and waitProducts.
#pragma once
#include "attention-hopper.cuh"

#define GRANARY_SUM(d, i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define GRANARY_SUMS_32(d, i)                                                             \
  GRANARY_SUM(d, i), GRANARY_SUM(d, i + 1), GRANARY_SUM(d, i + 2), GRANARY_SUM(d, i + 3), \
      GRANARY_SUM(d, i + 4), GRANARY_SUM(d, i + 5), GRANARY_SUM(d, i + 6), GRANARY_SUM(d, i + 7)
#define GRANARY_LIST_32                                                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
  "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GRANARY_LIST_64                                                                                   \
  GRANARY_LIST_32                                                                                         \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51," \
  " %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// d (+)= a * b^T, 64 x 128 x 16: a [64, 16] and b [128, 16] in shared memory, both with 16 columns in a row.
__device__ __forceinline__ void multiplyTransposed(float (&d)[16][4], unsigned long long a,
                                                   unsigned long long b, bool accumulates) {
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" GRANARY_LIST_64
      "}, %64, %65, adds, 1, 1, 0, 0;\n"
      "}\n"
      : GRANARY_SUMS_32(d, 0), GRANARY_SUMS_32(d, 8)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulates)));
}

// d += a * b, 64 x 128 x 16: a in registers, b [16, 128] in shared memory, 64 columns in a row.
__device__ __forceinline__ void multiplyAddRows(float (&d)[16][4], const unsigned (&a)[4],
                                                unsigned long long b) {
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" GRANARY_LIST_64
      "}, {%64, %65, %66, %67}, %68, adds, 1, 1, 1;\n"
      "}\n"
      : GRANARY_SUMS_32(d, 0), GRANARY_SUMS_32(d, 8)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));
}

// The same with 64 columns.
__device__ __forceinline__ void multiplyAddRows(float (&d)[8][4], const unsigned (&a)[4],
                                                unsigned long long b) {
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" GRANARY_LIST_32
      "}, {%32, %33, %34, %35}, %36, adds, 1, 1, 1;\n"
      "}\n"
      : GRANARY_SUMS_32(d, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));
}

#undef GRANARY_SUM
#undef GRANARY_SUMS_32
#undef GRANARY_LIST_32
#undef GRANARY_LIST_64
