#include "ops/float_types.h"

namespace infernode::test {
namespace {

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

TEST_CASE("LSTM's gates stand in the order input, output, forget, cell") {
  const Tensor x = f32({1, 1, 1}, {1}), w = f32({1, 4, 1}, {1, 2, 3, 4}), r = f32({1, 4, 1}, {0, 0, 0, 0});
  const float cell = sigmoid(3) * 5 + sigmoid(1) * std::tanh(4.0f), hidden = sigmoid(2) * std::tanh(cell);
  check_op("(X, W, R, C) => (Y, H, Z) { Y, H, Z = LSTM<hidden_size=1>(X, W, R, , , , C) }", 7,
           {x, w, r, f32({1, 1, 1}, {5})},
           {f32({1, 1, 1, 1}, {hidden}), f32({1, 1, 1}, {hidden}), f32({1, 1, 1}, {cell})});
}

TEST_CASE("LSTM's threads share the products of a step") {
  for (const char* direction : {"forward", "bidirectional"}) {
    const std::int64_t directions = direction == std::string("forward") ? 1 : 2;
    check_threads(cat("(X, W, R) => (Y) { Y = LSTM<hidden_size=200, direction=\"", direction, "\">(X, W, R) }"), 14,
                  {noise({7, 1, 12}), noise({directions, 800, 12}, 0.3f, 2), noise({directions, 800, 200}, 0.1f, 3)});
  }
}

TEST_CASE("LSTM does not depend on the number of threads where a number cannot be split") {
  const Tensor h = noise({1, 70, 48}, 1, 5);
  h.mutable_data<float>()[45 * 48] = 0x1p-110f;
  check_threads("(X, W, R, H) => (Y) { Y = LSTM<hidden_size=48>(X, W, R, , , H) }", 14,
                {noise({3, 70, 40}, 1, 4), noise({1, 192, 40}, 1, 6), noise({1, 192, 48}, 1, 7), h});
}

TEST_CASE("LSTM's peepholes see the cell") {
  const Tensor x = f32({1, 1, 1}, {0}), w = f32({1, 4, 1}, {0, 0, 0, 0}), r = f32({1, 4, 1}, {0, 0, 0, 0});
  // P holds input, output, forget; the output gate sees the new cell.
  const float cell = sigmoid(3 * 2) * 2, hidden = sigmoid(2 * cell) * std::tanh(cell);
  check_op("(X, W, R, H, C, P) => (Y) { Y = LSTM<hidden_size=1>(X, W, R, , , H, C, P) }", 14,
           {x, w, r, f32({1, 1, 1}, {0}), f32({1, 1, 1}, {2}), f32({1, 3}, {1, 2, 3})}, {f32({1, 1, 1, 1}, {hidden})});
  check_float_types(
      "(X, W, R, B, L, H, C, P) => (Y, Z, V) { Y, Z, V = LSTM<hidden_size=9, direction=\"bidirectional\">"
      "(X, W, R, B, L, H, C, P) }",
      22,
      {noise({3, 2, 4}), noise({2, 36, 4}, 0.5f, 2), noise({2, 36, 9}, 0.5f, 3), noise({2, 72}, 0.5f, 4),
       i32({2}, {2, 3}), noise({2, 2, 9}, 1, 5), noise({2, 2, 9}, 1, 6), noise({2, 27}, 1, 7)});
  check_op_fails("(X, W, R, P) => (Y) { Y = LSTM<hidden_size=1>(X, W, R, , , , , P) }", 14, {x, w, r, noise({1, 2})},
                 ErrorCode::ShapeMismatch, "P is");
}

TEST_CASE("LSTM takes other activations") {
  check_op("(X, W, R) => (Y) { Y = LSTM<hidden_size=1, activations=[\"HardSigmoid\", \"Relu\", \"Elu\"]>(X, W, R) }",
           14, {f32({1, 1, 1}, {1}), f32({1, 4, 1}, {0, 0, 0, 4}), f32({1, 4, 1}, {0, 0, 0, 0})},
           {f32({1, 1, 1, 1}, {0.5f * 2})});
}

}  // namespace
}  // namespace infernode::test
