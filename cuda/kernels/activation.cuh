// Activation functions of gated linear units, in f32.
#pragma once

constexpr int kActivationSilu = 0;      // GRANARY_SILU
constexpr int kActivationGeluTanh = 1;  // GRANARY_GELU_TANH

__device__ __forceinline__ float activate(float x, int activation) {
  if (activation == kActivationSilu) return x / (1.0f + expf(-x));
  constexpr float kSqrtTwoOverPi = 0.7978845608028654f;
  const float inner = kSqrtTwoOverPi * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + tanhf(inner));
}
