#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("GRU blends its candidate with the state") {
  // One unit, update gate 0.5 (no input), reset gate 0.5, candidate tanh(x + r * h).
  const Tensor x = f32({1, 1, 1}, {1}), w = f32({1, 3, 1}, {0, 0, 1}), r = f32({1, 3, 1}, {0, 0, 1}),
               h = f32({1, 1, 1}, {2});
  const float expected = 0.5f * std::tanh(1 + 0.5f * 2) + 0.5f * 2;
  check_op("(X, W, R, H) => (Y, Z) { Y, Z = GRU<hidden_size=1>(X, W, R, , , H) }", 7, {x, w, r, h},
           {f32({1, 1, 1, 1}, {expected}), f32({1, 1, 1}, {expected})});
  // The bias of R's candidate lies inside the reset product only where linear_before_reset.
  const Tensor b = f32({1, 6}, {0, 0, 0, 0, 0, 3});
  const float outside = 0.5f * std::tanh(1 + 0.5f * 2 + 3.0f) + 1, inside = 0.5f * std::tanh(1 + 0.5f * (2 + 3.0f)) + 1;
  check_op("(X, W, R, B, H) => (Y) { Y = GRU<hidden_size=1>(X, W, R, B, , H) }", 14, {x, w, r, b, h},
           {f32({1, 1, 1, 1}, {outside})});
  check_op("(X, W, R, B, H) => (Y) { Y = GRU<hidden_size=1, linear_before_reset=1>(X, W, R, B, , H) }", 14,
           {x, w, r, b, h}, {f32({1, 1, 1, 1}, {inside})});
}

TEST_CASE("GRU takes other activations") {
  check_op(
      "(X, W, R) => (Y) { Y = GRU<hidden_size=1, activations=[\"HardSigmoid\", \"Affine\"], activation_alpha=[0.25, "
      "2.0], "
      "activation_beta=[0.25, 1.0]>(X, W, R) }",
      14, {f32({1, 1, 1}, {3}), f32({1, 3, 1}, {0, 0, 1}), f32({1, 3, 1}, {0, 0, 0})},
      {f32({1, 1, 1, 1}, {0.75f * 7})});
}

}  // namespace
}  // namespace infernode::test
