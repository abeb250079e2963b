#include <cmath>

#include "ops/op_test.h"

namespace infernode::test {

TEST_CASE("Affine, Scale, ScaledTanh and ParametricSoftplus are what replaced them") {
  const Tensor x = f32({2}, {-1, 2});
  check_op("(X) => (Y) { Y = Affine<alpha=2.0, beta=3.0>(X) }", 1, {x}, {f32({2}, {1, 7})});
  check_op("(X) => (Y) { Y = Affine(X) }", 9, {x}, {x});
  check_op("(X) => (Y) { Y = Scale<scale=0.5>(X) }", 1, {x}, {f32({2}, {-0.5f, 1})});
  check_op("(X) => (Y) { Y = ScaledTanh<alpha=2.0, beta=0.5>(X) }", 1, {x},
           {f32({2}, {2 * std::tanh(-0.5f), 2 * std::tanh(1.0f)})});
  check_op("(X) => (Y) { Y = ParametricSoftplus<alpha=2.0, beta=0.5>(X) }", 1, {x},
           {f32({2}, {2 * std::log1p(std::exp(-0.5f)), 2 * std::log1p(std::exp(1.0f))})});
  check_op("(X) => (Y) { Y = Affine<alpha=2.0, beta=3.0>(X) }", 1, {f64({1}, {2})}, {f64({1}, {7})});
  check_op("(X) => (Y) { Y = Affine<alpha=2.0, beta=3.0>(X) }", 1, {f16({1}, {2})}, {f16({1}, {7})});
}

TEST_CASE("ImageScaler scales images and shifts their channels") {
  check_op("(float[1,2,1,2] X) => (Y) { Y = ImageScaler<scale=2.0, bias=[10.0, 20.0]>(X) }", 1,
           {f32({1, 2, 1, 2}, {1, 2, 3, 4})}, {f32({1, 2, 1, 2}, {12, 14, 26, 28})});
}

TEST_CASE("Crop cuts the borders off, or out what scale says") {
  const Tensor x = iota(DType::Float32, {1, 1, 4, 5});
  check_op("(X) => (Y) { Y = Crop<border=[1, 2, 1, 0]>(X) }", 1, {x}, {f32({1, 1, 2, 3}, {11, 12, 13, 16, 17, 18})});
  check_op("(X) => (Y) { Y = Crop<border=[1, 0, 0, 0], scale=[1, 2]>(X) }", 1, {x}, {f32({1, 1, 1, 2}, {1, 2})});
  check_op("(X) => (Y) { Y = Crop<border=[9, 0, 0, 0]>(X) }", 1, {f32({1, 1, 0, 9}, {})}, {f32({1, 1, 0, 0}, {})});
  check_op_fails("(X) => (Y) { Y = Crop<border=[4, 0, 0, 0], scale=[1, 2]>(X) }", 1, {x}, ErrorCode::ShapeMismatch,
                 "an axis of 5");
  check_op_fails("(X) => (Y) { Y = Crop<border=[4, 0]>(X) }", 1, {x}, ErrorCode::InvalidModel, "border");
  check_op_fails("(X) => (Y) { Y = Crop<border=[1, 0, 0, 9223372036854775807]>(X) }", 1, {f32({1, 1, 1, 0}, {})},
                 ErrorCode::ShapeMismatch, "an axis of 0");
}

TEST_CASE("DynamicSlice slices, with and without axes") {
  const Tensor x = iota(DType::Float32, {3, 4});
  check_op("(X, s, e) => (Y) { Y = DynamicSlice(X, s, e) }", 1, {x, i64({2}, {1, 1}), i64({2}, {2, 3})},
           {f32({1, 2}, {5, 6})});
  check_op("(X, s, e, a) => (Y) { Y = DynamicSlice(X, s, e, a) }", 1, {x, i32({1}, {-1}), i32({1}, {9}), i32({1}, {1})},
           {f32({3, 1}, {3, 7, 11})});
}

TEST_CASE("ThresholdedRelu and MeanVarianceNormalization have their first versions") {
  check_op("(X) => (Y) { Y = ThresholdedRelu<alpha=1.5>(X) }", 1, {f32({3}, {1, 1.5f, 2})}, {f32({3}, {0, 0, 2})});
  const Tensor x = f32({1, 2, 1, 2}, {1, 3, 10, 14});
  check_op("(X) => (Y) { Y = MeanVarianceNormalization(X) }", 1, {x}, {f32({1, 2, 1, 2}, {-1, 1, -1, 1})});
  check_op("(X) => (Y) { Y = MeanVarianceNormalization<normalize_variance=0>(X) }", 1, {x},
           {f32({1, 2, 1, 2}, {-1, 1, -2, 2})});
  check_op("(X) => (Y) { Y = MeanVarianceNormalization<across_channels=1, normalize_variance=0>(X) }", 1, {x},
           {f32({1, 2, 1, 2}, {-6, -4, 3, 7})});
}

}  // namespace infernode::test
