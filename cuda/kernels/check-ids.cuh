// Debug check of an id array. Each thread tests ids in a stride of the grid; a breach is left in host memory
// for later calls.
//   ids        [count]  int32
//   violation  one int32 in page-locked memory: the smallest id seen outside [low, high), or inside if
//   isForbidden
#pragma once

struct CheckIdsParams {
  const int* ids;
  int* violation;
  long long count;
  int low, high;
  int isForbidden;
};

__global__ void checkIdsKernel(const __grid_constant__ CheckIdsParams p) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.count; i += step) {
    const int id = p.ids[i];
    const bool isInside = id >= p.low && id < p.high;
    if (isInside == (p.isForbidden != 0)) atomicMin_system(p.violation, id);
  }
}
