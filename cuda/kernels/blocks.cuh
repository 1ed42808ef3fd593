// Clearing and copying cache blocks, all planned fields of all listed blocks in one launch.
//   fields  [numFields]  CacheField: block i of a field starts at base + i * strideBytes and holds
//   payloadBytes ids     [numIds]     int32
// Grid (ids, fields, slices of the payload). 16-byte words where address and size allow, else bytes. Either
// side may be page-locked host memory. Bound: HBM or the bus, bytes = numIds * sum of payloads * (1 or 2).
#pragma once

constexpr int kBlockThreads = 256;
constexpr int kBlockSlices = 8;

struct CacheField {
  char* base;
  long long strideBytes, payloadBytes;
};
struct alignas(16) BlockWord {
  unsigned values[4];
};

struct ZeroBlocksParams {
  const CacheField* fields;
  const int* ids;
};
struct CopyBlocksParams {
  const CacheField* sources;
  const CacheField* destinations;
  const int* sourceIds;
  const int* destinationIds;
};

template <typename TWord>
__device__ __forceinline__ void zeroWords(char* destination, long long bytes) {
  auto* words = reinterpret_cast<TWord*>(destination);
  const long long count = bytes / static_cast<long long>(sizeof(TWord));
  const long long step = kBlockThreads * kBlockSlices;
  for (long long i = blockIdx.z * kBlockThreads + threadIdx.x; i < count; i += step) words[i] = TWord{};
}

template <typename TWord>
__device__ __forceinline__ void copyWords(char* destination, const char* source, long long bytes) {
  auto* to = reinterpret_cast<TWord*>(destination);
  const auto* from = reinterpret_cast<const TWord*>(source);
  const long long count = bytes / static_cast<long long>(sizeof(TWord));
  const long long step = kBlockThreads * kBlockSlices;
#pragma unroll 4
  for (long long i = blockIdx.z * kBlockThreads + threadIdx.x; i < count; i += step) to[i] = from[i];
}

__global__ void zeroBlocksKernel(const __grid_constant__ ZeroBlocksParams p) {
  const CacheField field = p.fields[blockIdx.y];
  char* destination = field.base + p.ids[blockIdx.x] * field.strideBytes;
  const bool isWide =
      (reinterpret_cast<unsigned long long>(destination) | field.payloadBytes) % sizeof(BlockWord) == 0;
  if (isWide) {
    zeroWords<BlockWord>(destination, field.payloadBytes);
  } else {
    zeroWords<char>(destination, field.payloadBytes);
  }
}

__global__ void copyBlocksKernel(const __grid_constant__ CopyBlocksParams p) {
  const CacheField from = p.sources[blockIdx.y], to = p.destinations[blockIdx.y];
  const char* source = from.base + p.sourceIds[blockIdx.x] * from.strideBytes;
  char* destination = to.base + p.destinationIds[blockIdx.x] * to.strideBytes;
  const auto bits =
      reinterpret_cast<unsigned long long>(source) | reinterpret_cast<unsigned long long>(destination);
  if ((bits | from.payloadBytes) % sizeof(BlockWord) == 0) {
    copyWords<BlockWord>(destination, source, from.payloadBytes);
  } else {
    copyWords<char>(destination, source, from.payloadBytes);
  }
}
