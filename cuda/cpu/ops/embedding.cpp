// granary_embedding and granary_gather_rows.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

GRANARY_EXPORT int32_t granary_embedding(const GranaryEmbedding* args) {
  Check check("embedding", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("columns", args->columns, 1);
  check.atLeast("vocab", args->vocab, 1);
  check.activation("dtype", args->dtype);
  check.storage("tableDtype", args->tableDtype);
  check.present("table", args->table);
  check.present("ids", args->ids);
  check.present("out", args->out);
  if (verifies()) check.inRange("ids", args->ids, args->rows, INT32_MIN, args->vocab);
  if (check.failed()) return check.status();
  kernels().embedding(*args);
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_gather_rows(const GranaryGatherRows* args) {
  Check check("gather_rows", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("columns", args->columns, 1);
  check.activation("dtype", args->dtype);
  check.present("x", args->x);
  check.present("indices", args->indices);
  check.present("out", args->out);
  check.atLeast("xStride", args->xStride, args->columns);
  check.atLeast("outStride", args->outStride, args->columns);
  if (check.failed()) return check.status();
  kernels().gatherRows(*args);
  return GRANARY_OK;
}
