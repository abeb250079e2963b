#include <algorithm>

#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Identity passes every kind of value") {
  check_op("(float[N] X) => (Y) { Y = Identity(X) }", 1, {f32({2}, {1, 2})}, {f32({2}, {1, 2})});
  check_op("(X) => (Y) { Y = Identity(X) }", 25, {tensor_as(DType::Int4, {3}, {1, -2, 3})},
           {tensor_as(DType::Int4, {3}, {1, -2, 3})});
  check_op("(X) => (Y) { Y = Identity(X) }", 13, {str({1}, {"a"})}, {str({1}, {"a"})});
  const Value sequence = tensor::Sequence{DType::Float32, {f32({1}, {1}), f32({2}, {2, 3})}};
  CHECK(difference(run_op("(seq(float) X) => (Y) { Y = Identity(X) }", 16, {sequence}).at(0), sequence).empty());
}

TEST_CASE("Dropout without training is the identity") {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  check_op("(X) => (Y) { Y = Dropout(X) }", 13, {x}, {x});
  check_op("(X) => (Y, M) { Y, M = Dropout(X) }", 13, {x}, {x, b8({2, 2}, {true, true, true, true})});
  check_op("(X) => (Y, M) { Y, M = Dropout<ratio=0.9>(X) }", 10, {x}, {x, b8({2, 2}, {true, true, true, true})});
  check_op("(X) => (Y, M) { Y, M = Dropout<ratio=0.9>(X) }", 7, {x}, {x, f32({2, 2}, {1, 1, 1, 1})});
  check_op("(X) => (Y) { Y = Dropout<is_test=1, ratio=0.9>(X) }", 6, {x}, {x});
  check_op("(X, R, T) => (Y, M) { Y, M = Dropout(X, R, T) }", 12, {x, f32({}, {0}), b8({}, {true})},
           {x, b8({2, 2}, {true, true, true, true})});
}

TEST_CASE("Dropout in training drops about as many as asked and scales the rest") {
  const Tensor x = iota(DType::Float32, {10000}, 1);
  const char* text = "(X, R, T) => (Y, M) { Y, M = Dropout<seed=5>(X, R, T) }";
  const auto out = run_op(text, 13, {x, f32({}, {0.75f}), b8({}, {true})});
  const auto y = out.at(0).tensor().span<float>();
  const auto mask = out.at(1).tensor().span<bool>();
  CHECK(std::abs(std::count(mask.begin(), mask.end(), true) - 2500) < 200);
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == (mask[i] ? 4.0f * x.data<float>()[i] : 0.0f));
  CHECK(difference(run_op(text, 13, {x, f32({}, {0.75f}), b8({}, {true})}).at(0), out.at(0)).empty());
  check_op_fails(text, 13, {x, f32({}, {1}), b8({}, {true})}, ErrorCode::InvalidArgument, "ratio");
}

}  // namespace
}  // namespace infernode::test
