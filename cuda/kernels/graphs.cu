// Graph capture and replay. A graph is the recorded list of ops: nothing in it depends on a host value that
// may change.
#include "runtime.h"

using namespace granary;

extern "C" {

int32_t granary_capture_begin(void) {
  GRANARY_TRY(enterOutsideCapture("granary_capture_begin"));
  const cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
  GRANARY_TRY(check(cudaStreamBeginCapture(runtime.stream, mode), "granary_capture_begin"));
  runtime.isCapturing = true;
  return GRANARY_OK;
}

void* granary_capture_end(void) {
  if (enter() != GRANARY_OK) return nullptr;
  if (!runtime.isCapturing) {
    fail(GRANARY_INVALID, "granary_capture_end without a begin");
    return nullptr;
  }
  runtime.isCapturing = false;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  if (check(cudaStreamEndCapture(runtime.stream, &graph), "granary_capture_end") != GRANARY_OK)
    return nullptr;
  int32_t status = check(cudaGraphInstantiate(&executable, graph, 0), "instantiating a graph");
  cudaGraphDestroy(graph);
  if (status == GRANARY_OK) status = check(cudaGraphUpload(executable, runtime.stream), "uploading a graph");
  if (status == GRANARY_OK) return executable;
  if (executable != nullptr) cudaGraphExecDestroy(executable);
  return nullptr;
}

int32_t granary_graph_launch(granary_address graph) {
  GRANARY_TRY(enterOutsideCapture("granary_graph_launch"));
  return check(cudaGraphLaunch(pointer<CUgraphExec_st>(graph), runtime.stream), "granary_graph_launch");
}

int32_t granary_graph_destroy(granary_address graph) {
  GRANARY_TRY(enterOutsideCapture("granary_graph_destroy"));
  return check(cudaGraphExecDestroy(pointer<CUgraphExec_st>(graph)), "granary_graph_destroy");
}

}  // extern "C"
