#pragma once

#include "microkernels/common/activation.h"
#include "microkernels/common/simd_file.h"
#include "simd/math.h"

// Activations inside *.simd.cpp files.
namespace infernode::microkernels {
namespace {

template <typename Fn>
INFERNODE_SIMD void map_row(float* p, std::size_t n, Fn fn) {
  for (; n >= kLanes; n -= kLanes, p += kLanes) store(p, fn(load(p)));
  if (n) store_partial(p, fn(load_partial(p, n)), n);
}

// What an epilogue clamps to before storing; kNone, kRelu and kClip need nothing more.
struct ClampBounds {
  float low, high;
};
INFERNODE_SIMD ClampBounds clamp_bounds(const ActivationArgs& activation) {
  switch (activation.kind) {
    case Activation::kRelu:
      return {0.0f, __builtin_inff()};
    case Activation::kClip:
      return {activation.a, activation.b};
    default:
      return {-__builtin_inff(), __builtin_inff()};
  }
}
INFERNODE_SIMD bool is_clamp(const ActivationArgs& activation) {
  return activation.kind == Activation::kNone || activation.kind == Activation::kRelu ||
         activation.kind == Activation::kClip;
}

// Applies the activation to n elements in place.
[[maybe_unused]] void activate_row(const ActivationArgs& activation, float* p, std::size_t n) noexcept {
  if (activation.kind == Activation::kGelu) {
    for (; n >= kSideBySide * kLanes; n -= kSideBySide * kLanes, p += kSideBySide * kLanes) {
      const auto y = gelu(each<kSideBySide>([&](std::size_t i) { return load(p + i * kLanes); }));
      INFERNODE_UNROLL
      for (std::size_t i = 0; i < kSideBySide; ++i) store(p + i * kLanes, y.v[i]);
    }
  }
  const VecF a = set(activation.a), b = set(activation.b);
  switch (activation.kind) {
    case Activation::kNone:
      break;
#define INFERNODE_ACTIVATION(name, default_a, default_b, vectors, definition) \
  case Activation::k##name:                                                   \
    map_row(p, n, [&]([[maybe_unused]] VecF x) { return vectors; });          \
    break;
#include "microkernels/common/activations.inc"
#undef INFERNODE_ACTIVATION
  }
}

}  // namespace
}  // namespace infernode::microkernels
