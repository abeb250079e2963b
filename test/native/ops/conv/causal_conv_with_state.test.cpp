#include "ops/op_test.h"

namespace infernode::test {

TEST_CASE("CausalConvWithState convolves each channel over what came before") {
  const Tensor x = f32({1, 2, 3}, {1, 2, 3, 4, 5, 6}), w = f32({2, 1, 2}, {10, 1, 0, 2});
  check_op("(X, W) => (Y, S) { Y, S = CausalConvWithState(X, W) }", 27, {x, w},
           {f32({1, 2, 3}, {1, 12, 23, 8, 10, 12}), f32({1, 2, 1}, {3, 6})});
  check_op("(X, W, B, P) => (Y, S) { Y, S = CausalConvWithState(X, W, B, P) }", 27,
           {x, w, f32({2}, {100, 0}), f32({1, 2, 1}, {7, 8})},
           {f32({1, 2, 3}, {171, 112, 123, 8, 10, 12}), f32({1, 2, 1}, {3, 6})});
}

TEST_CASE("CausalConvWithState keeps a state longer than the input, and takes a kernel of one") {
  check_op("(X, W, P) => (Y, S) { Y, S = CausalConvWithState(X, W, , P) }", 27,
           {f32({1, 1, 1}, {5}), f32({1, 1, 4}, {1, 1, 1, 1}), f32({1, 1, 3}, {1, 2, 3})},
           {f32({1, 1, 1}, {11}), f32({1, 1, 3}, {2, 3, 5})});
  check_op("(X, W) => (Y, S) { Y, S = CausalConvWithState(X, W) }", 27, {f32({1, 1, 2}, {5, 6}), f32({1, 1, 1}, {2})},
           {f32({1, 1, 2}, {10, 12}), f32({1, 1, 0}, {})});
}

TEST_CASE("CausalConvWithState activates, in every type") {
  for (const DType type : {DType::Float32, DType::Float16, DType::BFloat16}) {
    check_op("(X, W) => (Y, S) { Y, S = CausalConvWithState<activation=\"silu\">(X, W) }", 27,
             {tensor_as(type, {1, 1, 2}, {1, -1}), tensor_as(type, {1, 1, 1}, {2})},
             {tensor_as(type, {1, 1, 2}, {1.7615942, -0.2384058}), tensor_as(type, {1, 1, 0}, {})}, 1e-2);
  }
  check_op_fails("(X, W) => (Y, S) { Y, S = CausalConvWithState<activation=\"relu\">(X, W) }", 27,
                 {f32({1, 1, 1}, {1}), f32({1, 1, 1}, {1})}, ErrorCode::InvalidModel, "'relu'");
  check_op_fails("(X, W) => (Y, S) { Y, S = CausalConvWithState(X, W) }", 27,
                 {f32({1, 2, 1}, {1, 1}), f32({1, 1, 1}, {1})}, ErrorCode::ShapeMismatch, "weight");
  CHECK(infer_op("(float[N,C,L] X, float[C,1,4] W) => (S) { Y, S = CausalConvWithState(X, W) }", 27) ==
        "tensor(float)[N,C,3]");
}

}  // namespace infernode::test
