// Linear layer.
//   out = x * weight^T (+ bias) (+ residual); x f32 [rows, inColumns], weight f32 or bf16 [outColumns,
//   inColumns]
// A task is a block of rows and a piece of columns. Arithmetic and bound: product.cpp.
#include "kernel.h"
#include "product.h"

namespace granary::GRANARY_ISA {

void linear(const GranaryLinear& args) {
  const Product product = {
      .x = at<const float>(args.x),
      .xStride = args.xStride,
      .xRows = nullptr,
      .weight = at<const void>(args.weight),
      .weightIsBf16 = args.weightDtype == GRANARY_BF16,
      .inColumns = args.inColumns,
      .bias = at<const float>(args.bias),
      .residual = at<const float>(args.residual),
      .residualStride = args.residualStride,
      .out = at<float>(args.out),
      .outStride = args.outStride,
  };
  if (args.rows == 0 || args.outColumns == 0) return;
  int64_t rowsAtOnce = packedRows(args.inColumns, workspaceOf(0).bytes);
  if (rowsAtOnce < 1 || rowsAtOnce > args.rows) rowsAtOnce = args.rows;
  const int32_t rowBlocks = static_cast<int32_t>((args.rows + rowsAtOnce - 1) / rowsAtOnce);
  const int32_t columnPieces = numPieces(args.outColumns, rowsAtOnce * args.inColumns);
  forEachTask(rowBlocks * columnPieces, [&](int32_t task, int32_t thread) {
    const int64_t block = task / columnPieces;
    const int64_t piece = task % columnPieces;
    const int64_t rowEnd = (block + 1) * rowsAtOnce;
    const ProductRange range = {
        .rowBegin = block * rowsAtOnce,
        .rowEnd = rowEnd < args.rows ? rowEnd : args.rows,
        .columnBegin = args.outColumns * piece / columnPieces,
        .columnEnd = args.outColumns * (piece + 1) / columnPieces,
    };
    multiplyRange(product, range, workspaceOf(thread));
  });
}

}  // namespace granary::GRANARY_ISA
