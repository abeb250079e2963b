#include "ops/float_types.h"

namespace infernode::test {
namespace {

const Tensor kX = f32({2, 2, 2}, {1, 3, 10, 30, 5, 7, 50, 70});
const Tensor kScale = f32({2}, {2, 1}), kBias = f32({2}, {1, 0}), kMean = f32({2}, {2, 20}), kVar = f32({2}, {4, 100});

TEST_CASE("BatchNormalization applies given statistics") {
  const Tensor y = f32({2, 2, 2}, {0, 2, -1, 1, 4, 6, 3, 5});
  for (const std::int64_t opset : {7, 9, 14, 15}) {
    check_op("(X, S, B, M, V) => (Y) { Y = BatchNormalization<epsilon=0.0>(X, S, B, M, V) }", opset,
             {kX, kScale, kBias, kMean, kVar}, {y});
  }
  check_op(
      "(X, S, B, M, V) => (Y) { Y = BatchNormalization<epsilon=0.0, is_test=1, consumed_inputs=[0,0,0,1,1]>(X, S, B, "
      "M, V) }",
      1, {kX, kScale, kBias, kMean, kVar}, {y});
}

TEST_CASE("BatchNormalization measures in training") {
  // Channel 0 holds 1 3 5 7, channel 1 ten times 1 3 5 7.
  const float a = 1 / std::sqrt(5.0f);
  const Tensor y = f32({2, 2, 2}, {-6 * a + 1, -2 * a + 1, -3 * a, -a, 2 * a + 1, 6 * a + 1, a, 3 * a});
  const Tensor mean = f32({2}, {0.5f * 2 + 0.5f * 4, 0.5f * 20 + 0.5f * 40});
  const Tensor variance = f32({2}, {0.5f * 4 + 0.5f * 5, 0.5f * 100 + 0.5f * 500});
  check_op(
      "(X, S, B, M, V) => (Y, RM, RV) { Y, RM, RV = BatchNormalization<epsilon=0.0, momentum=0.5, training_mode=1>"
      "(X, S, B, M, V) }",
      15, {kX, kScale, kBias, kMean, kVar}, {y, mean, variance});
  for (const std::int64_t opset : {6, 7, 9}) {
    check_op(
        "(X, S, B, M, V) => (Y, RM, RV, SM, SV) { Y, RM, RV, SM, SV = BatchNormalization<epsilon=0.0, momentum=0.5>"
        "(X, S, B, M, V) }",
        opset, {kX, kScale, kBias, kMean, kVar}, {y, mean, variance, f32({2}, {4, 40}), f32({2}, {5, 500})});
  }
}

TEST_CASE("Without spatial every element of an image has statistics of its own") {
  check_op("(X, S, B, M, V) => (Y) { Y = BatchNormalization<epsilon=0.0, spatial=0>(X, S, B, M, V) }", 7,
           {f32({2, 1, 2}, {1, 2, 3, 4}), f32({1, 2}, {1, 10}), f32({1, 2}, {0, 0}), f32({1, 2}, {1, 2}),
            f32({1, 2}, {1, 1})},
           {f32({2, 1, 2}, {0, 0, 2, 20})});
}

TEST_CASE("BatchNormalization agrees in all floating types, with and without planes") {
  const char* text = "(X, S, B, M, V) => (Y) { Y = BatchNormalization(X, S, B, M, V) }";
  const Tensor variance = iota(DType::Float32, {5}, 0.5);
  check_float_types(text, 15, {noise({3, 5, 7, 3}), noise({5}), noise({5}, 1, 2), noise({5}, 1, 3), variance});
  check_float_types(text, 15, {noise({9, 5}), noise({5}), noise({5}, 1, 2), noise({5}, 1, 3), variance});
}

TEST_CASE("BatchNormalization mixes element types from version 15 on") {
  check_op(
      "(float16[1,1,2] X, float[1] S, float[1] B, float[1] M, float[1] V) => (float16[1,1,2] Y) { "
      "Y = BatchNormalization<epsilon=0.0>(X, S, B, M, V) }",
      15, {f16({1, 1, 2}, {1, 3}), f32({1}, {2}), f32({1}, {1}), f32({1}, {2}), f32({1}, {4})},
      {f16({1, 1, 2}, {0, 2})});
}

TEST_CASE("BatchNormalization refuses statistics of another size") {
  check_op_fails("(X, S, B, M, V) => (Y) { Y = BatchNormalization(X, S, B, M, V) }", 15,
                 {kX, kScale, kBias, f32({3}, {1, 2, 3}), kVar}, ErrorCode::ShapeMismatch, "2 channels");
}

}  // namespace
}  // namespace infernode::test
