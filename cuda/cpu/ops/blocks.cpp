// The ops on whole cache blocks: granary_zero_blocks and granary_copy_blocks. A task is a piece of the
// (block, field) pairs.
#include <string.h>

#include "../runtime/check.h"
#include "../runtime/export.h"
#include "../runtime/thread-pool.h"

using namespace granary;

namespace {

const GranaryField* fieldsAt(granary_address address) {
  return reinterpret_cast<const GranaryField*>(address);
}
const int32_t* idsAt(granary_address address) { return reinterpret_cast<const int32_t*>(address); }

char* payloadOf(const GranaryField& field, int64_t id) {
  return reinterpret_cast<char*>(field.base) + id * field.strideBytes;
}

// Bytes of one block over all fields, as the cost of an item.
int64_t blockBytes(const GranaryField* fields, int32_t numFields) {
  int64_t bytes = 0;
  for (int32_t f = 0; f < numFields; ++f) bytes += fields[f].payloadBytes;
  return bytes;
}

}  // namespace

GRANARY_EXPORT int32_t granary_zero_blocks(const GranaryZeroBlocks* args) {
  Check check("zero_blocks", args);
  if (check.failed()) return check.status();
  check.atLeast("numFields", args->numFields, 0);
  check.atLeast("numIds", args->numIds, 0);
  if (args->numFields > 0) check.present("fields", args->fields);
  if (args->numIds > 0) check.present("ids", args->ids);
  if (check.failed() || args->numFields == 0 || args->numIds == 0) return check.status();
  const GranaryField* fields = fieldsAt(args->fields);
  const int32_t* ids = idsAt(args->ids);
  forEachRange(args->numIds, blockBytes(fields, args->numFields) / 4,
               [&](int64_t begin, int64_t end, int32_t) {
                 for (int64_t i = begin; i < end; ++i) {
                   if (ids[i] < 0) continue;
                   for (int32_t f = 0; f < args->numFields; ++f) {
                     memset(payloadOf(fields[f], ids[i]), 0, static_cast<size_t>(fields[f].payloadBytes));
                   }
                 }
               });
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_copy_blocks(const GranaryCopyBlocks* args) {
  Check check("copy_blocks", args);
  if (check.failed()) return check.status();
  check.atLeast("numFields", args->numFields, 0);
  check.atLeast("numIds", args->numIds, 0);
  if (args->numFields > 0) {
    check.present("sources", args->sources);
    check.present("destinations", args->destinations);
  }
  if (args->numIds > 0) {
    check.present("sourceIds", args->sourceIds);
    check.present("destinationIds", args->destinationIds);
  }
  if (check.failed() || args->numFields == 0 || args->numIds == 0) return check.status();
  const GranaryField* sources = fieldsAt(args->sources);
  const GranaryField* destinations = fieldsAt(args->destinations);
  for (int32_t f = 0; f < args->numFields; ++f) {
    check.that(sources[f].payloadBytes == destinations[f].payloadBytes, "destinations",
               "differs from sources in payload");
  }
  if (check.failed()) return check.status();
  const int32_t* from = idsAt(args->sourceIds);
  const int32_t* to = idsAt(args->destinationIds);
  // One after another: a pair may read what an earlier one wrote.
  for (int64_t i = 0; i < args->numIds; ++i) {
    if (from[i] < 0 || to[i] < 0) continue;
    for (int32_t f = 0; f < args->numFields; ++f) {
      memmove(payloadOf(destinations[f], to[i]), payloadOf(sources[f], from[i]),
              static_cast<size_t>(sources[f].payloadBytes));
    }
  }
  return GRANARY_OK;
}
