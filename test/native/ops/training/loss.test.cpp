#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("NegativeLogLikelihoodLoss picks, weighs, ignores and reduces") {
  const Tensor x = f32({3, 2}, {-1, -2, -3, -4, -5, -6}), t = i64({3}, {0, 1, 0});
  check_op("(X, T) => (L) { L = NegativeLogLikelihoodLoss<reduction=\"none\">(X, T) }", 12, {x, t},
           {f32({3}, {1, 4, 5})});
  check_op("(X, T) => (L) { L = NegativeLogLikelihoodLoss<reduction=\"sum\">(X, T) }", 13, {x, t}, {f32({}, {10})});
  check_op("(X, T, W) => (L) { L = NegativeLogLikelihoodLoss(X, T, W) }", 13, {x, t, f32({2}, {1, 2})},
           {f32({}, {14 / 4.0f})});
  check_op("(X, T) => (L) { L = NegativeLogLikelihoodLoss<ignore_index=1>(X, T) }", 13, {x, t}, {f32({}, {3})});
  check_op("(X, T) => (L) { L = NegativeLogLikelihoodLoss<ignore_index=-100, reduction=\"none\">(X, T) }", 13,
           {f32({1, 2, 2}, {-1, -2, -3, -4}), i32({1, 2}, {-100, 1})}, {f32({1, 2}, {0, 4})});
}

TEST_CASE("SoftmaxCrossEntropyLoss takes scores, and gives log-probabilities too") {
  const float l = std::log(3.0f);
  check_op("(float[N,2] X, T) => (float L, float[N,2] P) { L, P = SoftmaxCrossEntropyLoss(X, T) }", 13,
           {f32({2, 2}, {0, l, l, 0}), i64({2}, {1, 1})},
           {f32({}, {(std::log(4 / 3.0f) + std::log(4.0f)) / 2}),
            f32({2, 2}, {-std::log(4.0f), std::log(0.75f), std::log(0.75f), -std::log(4.0f)})});
  check_float_types("(X, T, W) => (L, P) { L, P = SoftmaxCrossEntropyLoss<reduction=\"none\">(X, T, W) }", 13,
                    {noise({2, 5, 3}, 2), i64({2, 3}, {0, 4, 2, 1, 3, 0}), iota(DType::Float32, {5}, 1)});
}

TEST_CASE("Losses refuse targets that are no class") {
  check_op_fails("(X, T) => (L) { L = NegativeLogLikelihoodLoss(X, T) }", 13, {noise({1, 2}), i64({1}, {2})},
                 ErrorCode::InvalidArgument, "target 2");
  check_op_fails("(X, T) => (L) { L = SoftmaxCrossEntropyLoss(X, T) }", 13, {noise({1, 2}), i64({1}, {-1})},
                 ErrorCode::InvalidArgument, "target -1");
  check_op_fails("(X, T) => (L) { L = SoftmaxCrossEntropyLoss(X, T) }", 13, {noise({1, 2, 3}), i64({1}, {0})},
                 ErrorCode::ShapeMismatch, "do not fit");
}

}  // namespace
}  // namespace infernode::test
