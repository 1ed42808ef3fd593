// Events: a time stamp each, because every op has finished when its call returns. Graphs do not exist here.
#include <time.h>

#include <new>

#include "check.h"
#include "export.h"

namespace granary {

namespace {

struct Event {
  timespec recordedAt;
  bool isRecorded;
};

Event* eventAt(granary_address address) { return reinterpret_cast<Event*>(address); }

int32_t noGraphs(const char* op) { return fail(GRANARY_UNSUPPORTED, op, "the CPU library has no graphs"); }

}  // namespace

}  // namespace granary

using namespace granary;

GRANARY_EXPORT void* granary_event_create(int32_t) {
  Event* event = new (std::nothrow) Event{};
  if (event == nullptr) fail(GRANARY_OUT_OF_MEMORY, "event_create", "no memory");
  return event;
}

GRANARY_EXPORT int32_t granary_event_destroy(granary_address event) {
  delete eventAt(event);
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_event_record(granary_address event) {
  if (event == 0) return fail(GRANARY_INVALID, "event_record", "event is absent");
  clock_gettime(CLOCK_MONOTONIC, &eventAt(event)->recordedAt);
  eventAt(event)->isRecorded = true;
  return GRANARY_OK;
}

GRANARY_EXPORT int32_t granary_event_query(granary_address event) {
  if (event == 0) return -fail(GRANARY_INVALID, "event_query", "event is absent");
  return 1;
}

GRANARY_EXPORT int32_t granary_event_wait(granary_address event) {
  if (event == 0) return fail(GRANARY_INVALID, "event_wait", "event is absent");
  return GRANARY_OK;
}

GRANARY_EXPORT double granary_event_elapsed_ns(granary_address begin, granary_address end) {
  if (begin == 0 || end == 0 || !eventAt(begin)->isRecorded || !eventAt(end)->isRecorded) {
    fail(GRANARY_INVALID, "event_elapsed_ns", "both events must be recorded");
    return -1;
  }
  const timespec& from = eventAt(begin)->recordedAt;
  const timespec& to = eventAt(end)->recordedAt;
  return static_cast<double>(to.tv_sec - from.tv_sec) * 1e9 + static_cast<double>(to.tv_nsec - from.tv_nsec);
}

GRANARY_EXPORT int32_t granary_capture_begin(void) { return noGraphs("capture_begin"); }
GRANARY_EXPORT void* granary_capture_end(void) {
  noGraphs("capture_end");
  return nullptr;
}
GRANARY_EXPORT int32_t granary_graph_launch(granary_address) { return noGraphs("graph_launch"); }
GRANARY_EXPORT int32_t granary_graph_destroy(granary_address) { return noGraphs("graph_destroy"); }
