#pragma once

#include <cstdint>

namespace infernode::microkernels {

// Activations that GEMM, convolution and pooling epilogues apply before storing: kNone and those of activations.inc.
enum class Activation : std::uint8_t {
  kNone,
#define INFERNODE_ACTIVATION(name, a, b, vectors, definition) k##name,
#include "microkernels/common/activations.inc"
#undef INFERNODE_ACTIVATION
};

struct ActivationArgs {
  Activation kind = Activation::kNone;
  float a = 0.0f;
  float b = 0.0f;
};

}  // namespace infernode::microkernels
