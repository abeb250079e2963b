#pragma once

#include <cstdint>

namespace infernode::microkernels {

// Activations that GEMM, convolution and pooling epilogues apply before storing.
enum class Activation : std::uint8_t {
  kNone,
  kRelu,
  kLeakyRelu,  // a = slope
  kClip,       // a = minimum, b = maximum
  kSigmoid,
  kTanh,
  kHardSigmoid,  // clamp(a * x + b, 0, 1)
  kHardSwish,    // x * clamp(x / 6 + 0.5, 0, 1)
  kGelu,         // x * (1 + erf(x / sqrt 2)) / 2
  kGeluTanh,     // tanh approximation of gelu
  kSilu,         // x * sigmoid(x)
};

struct ActivationArgs {
  Activation kind = Activation::kNone;
  float a = 0.0f;
  float b = 0.0f;
};

}  // namespace infernode::microkernels
