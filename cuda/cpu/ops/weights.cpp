// granary_weight_bytes, granary_prepare_weight, granary_weight_is_plain and granary_synthesize.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

namespace {

void checkPlace(Check& check, const GranaryWeight& args) {
  check.storage("dtype", args.dtype);
  check.atLeast("columns", args.columns, 1);
  check.atLeast("totalRows", args.totalRows, 1);
}

void checkRange(Check& check, const GranaryWeight& args) {
  checkPlace(check, args);
  check.present("prepared", args.prepared);
  check.atLeast("rows", args.rows, 0);
  check.atLeast("row", args.row, 0);
  check.atMost("row + rows", args.row + args.rows, args.totalRows);
  check.atLeast("sourceRow", args.sourceRow, 0);
  check.atLeast("sourceColumn", args.sourceColumn, 0);
  check.atLeast("sourceStride", args.sourceStride, args.sourceColumn + args.columns);
}

}  // namespace

GRANARY_EXPORT int64_t granary_weight_bytes(const GranaryWeight* args) {
  Check check("weight_bytes", args);
  if (check.failed()) return -check.status();
  checkPlace(check, *args);
  if (check.failed()) return -check.status();
  return args->totalRows * args->columns * (args->dtype == GRANARY_BF16 ? 2 : 4);
}

GRANARY_EXPORT int32_t granary_weight_is_plain(int32_t dtype) {
  return dtype == GRANARY_F32 || dtype == GRANARY_BF16;
}

GRANARY_EXPORT int32_t granary_prepare_weight(const GranaryWeight* args) {
  Check check("prepare_weight", args);
  if (check.failed()) return check.status();
  checkRange(check, *args);
  check.present("hostSource", args->hostSource);
  check.that(args->sourceDtype >= GRANARY_F32 && args->sourceDtype <= GRANARY_F16, "sourceDtype",
             "is no float type");
  if (check.failed()) return check.status();
  kernels().prepareWeight(*args);
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_synthesize(const GranarySynthesize* args) {
  Check check("synthesize", args);
  if (check.failed()) return check.status();
  checkRange(check, args->weight);
  check.atLeast("firstElement", args->firstElement, 0);
  if (check.failed()) return check.status();
  kernels().synthesize(*args);
  return GRANARY_OK;
}
