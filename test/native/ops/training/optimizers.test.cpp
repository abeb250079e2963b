#include "ops/op_test.h"

namespace infernode::test {
namespace {

std::string model(const char* call, const char* inputs, const char* outputs) {
  return cat("<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]> g (", inputs, ") => (",
             outputs, ") { ", outputs, " = ai.onnx.preview.training.", call, " }");
}

}  // namespace

TEST_CASE("Adagrad divides by the root of all squared gradients") {
  const std::string text = model("Adagrad<norm_coefficient=0.001, epsilon=1e-5, decay_factor=0.1>(R, T, X, G, H)",
                                 "R, T, float[N] X, G, H", "Y, K");
  check_op(text, 17, {f32({}, {0.1f}), i64({}, {0}), f32({1}, {1}), f32({1}, {-1}), f32({1}, {2})},
           {f32({1}, {1.0576963f}), f32({1}, {2.998001f})});
}

TEST_CASE("Adam averages gradients and their squares") {
  const std::string text = model("Adam<norm_coefficient=0.001, alpha=0.95, beta=0.1, epsilon=1e-7>(R, T, X, G, V, H)",
                                 "R, T, X, G, V, H", "Y, W, K");
  const std::vector<Value> state{f32({2}, {1.2f, 2.8f}), f32({2}, {-0.94f, -2.5f}), f32({2}, {1.7f, 3.6f}),
                                 f32({2}, {0.1f, 0.1f})};
  std::vector<Value> first{f32({}, {0.1f}), i64({}, {0})};
  first.insert(first.end(), state.begin(), state.end());
  // By the operator's pseudo code in double precision.
  check_op(text, 17, first,
           {f32({2}, {1.02503629f, 2.66103252f}), f32({2}, {1.56806f, 3.29514f}), f32({2}, {0.8032103f, 5.6224071f})},
           1e-4);
  const std::vector<Value> later =
      run_op(text, 17, {f32({}, {0.1f}), i64({}, {2}), state[0], state[1], state[2], state[3]});
  // R * sqrt(1 - 0.1^2) / (1 - 0.95^2)
  const float step = 0.1f * 0.99498744f / 0.0975f;
  CHECK(difference(
            later.at(0),
            f32({2}, {1.2f - step * 1.56806f / std::sqrt(0.8032103f), 2.8f - step * 3.29514f / std::sqrt(5.6224071f)}),
            1e-4)
            .empty());
}

TEST_CASE("Momentum takes the standard and Nesterov's step, over several tensors") {
  const char* attributes = "norm_coefficient=0.0, alpha=0.5, beta=2.0, mode=";
  const std::vector<Value> inputs{f32({}, {0.1f}), i64({}, {1}),     f32({1}, {1}), f32({2}, {1, 2}),
                                  f32({1}, {3}),   f32({2}, {1, 1}), f32({1}, {2}), f32({2}, {0, 4})};
  const auto text = [&](const char* mode) {
    return model(cat("Momentum<", attributes, "\"", mode, "\">(R, T, A, B, C, D, E, F)").c_str(),
                 "R, T, A, B, C, D, E, F", "X, Y, V, W");
  };
  check_op(text("standard"), 17, inputs, {f32({1}, {0.3f}), f32({2}, {0.8f, 1.6f}), f32({1}, {7}), f32({2}, {2, 4})});
  check_op(text("nesterov"), 17, inputs, {f32({1}, {0.35f}), f32({2}, {0.8f, 1.7f}), f32({1}, {7}), f32({2}, {2, 4})});
  check_op_fails(text("fast"), 17, inputs, ErrorCode::InvalidModel, "'fast'");
  std::vector<Value> unfit = inputs;
  unfit[4] = f32({2}, {3, 3});
  check_op_fails(text("standard"), 17, unfit, ErrorCode::ShapeMismatch, "gradient or state");
  unfit.pop_back();
  check_op_fails(
      model(cat("Momentum<", attributes, "\"standard\">(R, T, A, B, C, D)").c_str(), "R, T, A, B, C, D", "X"), 17,
      {inputs.begin(), inputs.begin() + 6}, ErrorCode::InvalidModel, "3 inputs for each");
}

TEST_CASE("Gradient is refused with the reason") {
  check_op_fails(model("Gradient<xs=[\"X\"], y=\"X\">(X)", "X", "Y"), 17, {f32({1}, {1})},
                 ErrorCode::UnsupportedOperator, "does not differentiate");
}

}  // namespace infernode::test
