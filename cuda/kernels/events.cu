// Events on the compute stream: the only way the host learns that work is done.
#include "runtime.h"

using namespace granary;

extern "C" {

void* granary_event_create(int32_t withTiming) {
  cudaEvent_t event = nullptr;
  if (enterOutsideCapture("granary_event_create") != GRANARY_OK) return nullptr;
  const unsigned flags = withTiming ? cudaEventDefault : cudaEventDisableTiming;
  return check(cudaEventCreateWithFlags(&event, flags), "granary_event_create") == GRANARY_OK ? event
                                                                                              : nullptr;
}

int32_t granary_event_destroy(granary_address event) {
  GRANARY_TRY(enterOutsideCapture("granary_event_destroy"));
  return check(cudaEventDestroy(pointer<CUevent_st>(event)), "granary_event_destroy");
}

int32_t granary_event_record(granary_address event) {
  GRANARY_TRY(enterOutsideCapture("granary_event_record"));
  return check(cudaEventRecord(pointer<CUevent_st>(event), runtime.stream), "granary_event_record");
}

int32_t granary_event_query(granary_address event) {
  const int32_t entered = enterOutsideCapture("granary_event_query");
  if (entered != GRANARY_OK) return -entered;
  const cudaError_t error = cudaEventQuery(pointer<CUevent_st>(event));
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return 0;
  }
  const int32_t status = check(error, "granary_event_query");
  return status == GRANARY_OK ? 1 : -status;
}

int32_t granary_event_wait(granary_address event) {
  GRANARY_TRY(enterOutsideCapture("granary_event_wait"));
  GRANARY_TRY(check(cudaEventSynchronize(pointer<CUevent_st>(event)), "granary_event_wait"));
  return enter();
}

double granary_event_elapsed_ns(granary_address begin, granary_address end) {
  float milliseconds = 0.0f;
  if (enterOutsideCapture("granary_event_elapsed_ns") != GRANARY_OK) return -1.0;
  const cudaError_t error =
      cudaEventElapsedTime(&milliseconds, pointer<CUevent_st>(begin), pointer<CUevent_st>(end));
  return check(error, "granary_event_elapsed_ns") == GRANARY_OK ? milliseconds * 1e6 : -1.0;
}

}  // extern "C"
