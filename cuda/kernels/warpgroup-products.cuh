// Matrix instructions of a warpgroup: 64 rows at a time, bf16 operands, f32 sums. Lane l of
// warp w owns rows 16 w + l / 4 (values 0 and 1 of a column of eight) and 8 below (values 2 and 3), columns
// l % 4 * 2 and the next. Nothing here waits: see beginProducts, commitProducts and waitProducts.
#pragma once
#include "hopper.cuh"

#define GRANARY_SUM(d, i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define GRANARY_SUMS_16(d, i) \
  GRANARY_SUM(d, i), GRANARY_SUM(d, i + 1), GRANARY_SUM(d, i + 2), GRANARY_SUM(d, i + 3)
#define GRANARY_SUMS_32(d, i) GRANARY_SUMS_16(d, i), GRANARY_SUMS_16(d, i + 4)
#define GRANARY_SUMS_48(d) GRANARY_SUMS_32(d, 0), GRANARY_SUMS_16(d, 8)
#define GRANARY_SUMS_64(d) GRANARY_SUMS_32(d, 0), GRANARY_SUMS_32(d, 8)
#define GRANARY_SUMS_96(d) GRANARY_SUMS_64(d), GRANARY_SUMS_32(d, 16)
#define GRANARY_SUMS_128(d) GRANARY_SUMS_96(d), GRANARY_SUMS_32(d, 24)
#define GRANARY_LIST_32                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GRANARY_LIST_48 \
  GRANARY_LIST_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define GRANARY_LIST_64 \
  GRANARY_LIST_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GRANARY_LIST_96                                                                          \
  GRANARY_LIST_64                                                                                \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define GRANARY_LIST_128                                                                           \
  GRANARY_LIST_96                                                                                  \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// d (+)= a * b^T, 64 x keys x 16: a [64, 16] and b [keys, 16] in shared memory, both with 16 columns in a
// row. The last three arguments are the numbers that a, b and accumulates have among the operands.
#define GRANARY_MULTIPLY_TRANSPOSED(keys, list, sums, first, second, third)                              \
  __device__ __forceinline__ void multiplyTransposed(float (&d)[keys / 8][4], unsigned long long a,       \
                                                     unsigned long long b, bool accumulates) {            \
    asm volatile(                                                                                         \
        "{\n"                                                                                             \
        ".reg .pred adds;\n"                                                                              \
        "setp.ne.b32 adds, " third ", 0;\n"                                                               \
        "wgmma.mma_async.sync.aligned.m64n" #keys "k16.f32.bf16.bf16 {" list "}, " first ", " second      \
        ", adds, 1, 1, 0, 0;\n"                                                                           \
        "}\n"                                                                                             \
        : sums                                                                                            \
        : "l"(a), "l"(b), "r"(static_cast<int>(accumulates)));                                            \
  }
GRANARY_MULTIPLY_TRANSPOSED(64, GRANARY_LIST_32, GRANARY_SUMS_32(d, 0), "%32", "%33", "%34")
GRANARY_MULTIPLY_TRANSPOSED(96, GRANARY_LIST_48, GRANARY_SUMS_48(d), "%48", "%49", "%50")
GRANARY_MULTIPLY_TRANSPOSED(128, GRANARY_LIST_64, GRANARY_SUMS_64(d), "%64", "%65", "%66")
GRANARY_MULTIPLY_TRANSPOSED(256, GRANARY_LIST_128, GRANARY_SUMS_128(d), "%128", "%129", "%130")

// d += a * b, 64 x dims x 16: a in registers, b [16, dims] in shared memory, 64 columns in a row.
// The last three arguments are the numbers of a, b and the constant one.
#define GRANARY_MULTIPLY_ADD_ROWS(dims, list, sums, rows, columns, one)                                   \
  __device__ __forceinline__ void multiplyAddRows(float (&d)[dims / 8][4], const unsigned (&a)[4],        \
                                                  unsigned long long b) {                                 \
    asm volatile(                                                                                         \
        "{\n"                                                                                             \
        ".reg .pred adds;\n"                                                                              \
        "setp.ne.b32 adds, " one ", 0;\n"                                                                 \
        "wgmma.mma_async.sync.aligned.m64n" #dims "k16.f32.bf16.bf16 {" list "}, {" rows "}, " columns    \
        ", adds, 1, 1, 1;\n"                                                                              \
        "}\n"                                                                                             \
        : sums                                                                                            \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(1));                                    \
  }
GRANARY_MULTIPLY_ADD_ROWS(64, GRANARY_LIST_32, GRANARY_SUMS_32(d, 0), "%32, %33, %34, %35", "%36", "%37")
GRANARY_MULTIPLY_ADD_ROWS(128, GRANARY_LIST_64, GRANARY_SUMS_64(d), "%64, %65, %66, %67", "%68", "%69")
GRANARY_MULTIPLY_ADD_ROWS(192, GRANARY_LIST_96, GRANARY_SUMS_96(d), "%96, %97, %98, %99", "%100", "%101")
GRANARY_MULTIPLY_ADD_ROWS(256, GRANARY_LIST_128, GRANARY_SUMS_128(d), "%128, %129, %130, %131", "%132",
                          "%133")

#undef GRANARY_SUM
#undef GRANARY_SUMS_16
#undef GRANARY_SUMS_32
#undef GRANARY_SUMS_48
#undef GRANARY_SUMS_64
#undef GRANARY_SUMS_96
#undef GRANARY_SUMS_128
#undef GRANARY_LIST_32
#undef GRANARY_LIST_48
#undef GRANARY_LIST_64
#undef GRANARY_LIST_96
#undef GRANARY_LIST_128
#undef GRANARY_MULTIPLY_TRANSPOSED
#undef GRANARY_MULTIPLY_ADD_ROWS
