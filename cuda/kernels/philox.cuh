// Philox4x32-10, the counter-based generator behind every draw: the first word of the block at a counter.
#pragma once

__device__ __forceinline__ unsigned philox(unsigned keyLow, unsigned keyHigh, unsigned c0, unsigned c1,
                                           unsigned c2, unsigned c3) {
  constexpr unsigned kMultiplier0 = 0xd2511f53u, kMultiplier1 = 0xcd9e8d57u;
  constexpr unsigned kWeyl0 = 0x9e3779b9u, kWeyl1 = 0xbb67ae85u;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = __umulhi(kMultiplier0, c0), low0 = kMultiplier0 * c0;
    const unsigned high1 = __umulhi(kMultiplier1, c2), low1 = kMultiplier1 * c2;
    c0 = high1 ^ c1 ^ keyLow;
    c1 = low1;
    c2 = high0 ^ c3 ^ keyHigh;
    c3 = low0;
    keyLow += kWeyl0;
    keyHigh += kWeyl1;
  }
  return c0;
}
