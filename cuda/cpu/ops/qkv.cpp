// granary_qkv.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

namespace {

void checkCache(Check& check, const GranaryQkv& args) {
  const int64_t elementBytes = args.kvDtype == GRANARY_BF16 ? 2 : 4;
  const int64_t rows = static_cast<int64_t>(args.pageSize) * args.numKvHeads * elementBytes;
  check.storage("kvDtype", args.kvDtype);
  check.present("kCache", args.kCache);
  check.present("vCache", args.vCache);
  check.present("locations", args.locations);
  check.atLeast("pageSize", args.pageSize, 1);
  check.atLeast("kPageStrideBytes", args.kPageStrideBytes, rows * args.headDim);
  check.atLeast("vPageStrideBytes", args.vPageStrideBytes, rows * args.vHeadDim);
  if (!verifies() || check.failed()) return;
  // Page 0 is nobody's: a location is either absent or behind it.
  const int32_t* locations = reinterpret_cast<const int32_t*>(args.locations);
  for (int32_t r = 0; r < args.rows; ++r) {
    if (locations[r] >= 0 && locations[r] < args.pageSize)
      check.that(false, "locations", "names a row of page 0");
  }
}

}  // namespace

GRANARY_EXPORT int32_t granary_qkv(const GranaryQkv* args) {
  Check check("qkv", args);
  if (check.failed()) return check.status();
  check.atLeast("rows", args->rows, 0);
  check.atLeast("numQHeads", args->numQHeads, 1);
  check.atLeast("numKvHeads", args->numKvHeads, 1);
  check.atLeast("headDim", args->headDim, 1);
  check.atMost("headDim", args->headDim, kMaxHeadDim);
  check.atLeast("vHeadDim", args->vHeadDim, 1);
  check.atLeast("pairs", args->pairs, args->cosSin != 0 ? 1 : 0);
  check.atMost("pairs", args->pairs, args->headDim / 2);
  check.activation("dtype", args->dtype);
  check.present("qkv", args->qkv);
  check.present("qOut", args->qOut);
  const int64_t qColumns = static_cast<int64_t>(args->numQHeads) * args->headDim;
  const int64_t kvColumns = static_cast<int64_t>(args->numKvHeads) * (args->headDim + args->vHeadDim);
  check.atLeast("qkvStride", args->qkvStride, qColumns + kvColumns);
  check.atLeast("qOutStride", args->qOutStride, qColumns);
  if (args->kCache != 0 || args->vCache != 0) checkCache(check, *args);
  if (check.failed()) return check.status();
  kernels().qkv(*args);
  return GRANARY_OK;
}
