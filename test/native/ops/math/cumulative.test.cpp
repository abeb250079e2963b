#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("CumSum in all four directions") {
  const Tensor x = f32({3}, {1, 2, 3}), axis = i64({}, {0});
  check_op("(X, A) => (Y) { Y = CumSum(X, A) }", 11, {x, axis}, {f32({3}, {1, 3, 6})});
  check_op("(X, A) => (Y) { Y = CumSum<exclusive=1>(X, A) }", 11, {x, axis}, {f32({3}, {0, 1, 3})});
  check_op("(X, A) => (Y) { Y = CumSum<reverse=1>(X, A) }", 14, {x, axis}, {f32({3}, {6, 5, 3})});
  check_op("(X, A) => (Y) { Y = CumSum<reverse=1, exclusive=1>(X, A) }", 14, {x, axis}, {f32({3}, {5, 3, 0})});
}

TEST_CASE("CumSum and CumProd along any axis of any type") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int32, DType::Int64,
                           DType::UInt32, DType::UInt64}) {
    const Tensor x = tensor_as(type, {2, 3}, {1, 2, 3, 4, 5, 6});
    check_op("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {x, i32({}, {0})},
             {tensor_as(type, {2, 3}, {1, 2, 3, 5, 7, 9})});
    check_op("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {x, i32({1}, {-1})},
             {tensor_as(type, {2, 3}, {1, 3, 6, 4, 9, 15})});
    check_op("(X, A) => (Y) { Y = CumProd(X, A) }", 26, {x, i64({}, {1})},
             {tensor_as(type, {2, 3}, {1, 2, 6, 4, 20, 120})});
    check_op("(X, A) => (Y) { Y = CumProd<reverse=1, exclusive=1>(X, A) }", 26, {x, i64({}, {1})},
             {tensor_as(type, {2, 3}, {6, 3, 1, 30, 6, 1})});
  }
}

TEST_CASE("CumSum of nothing, and along no axis") {
  check_op("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {f32({0, 2}, {}), i64({}, {0})}, {f32({0, 2}, {})});
  check_op_fails("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {f32({2}, {1, 2}), i64({}, {1})}, ErrorCode::InvalidArgument,
                 "axis");
  check_op_fails("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {f32({}, {1}), i64({}, {0})}, ErrorCode::ShapeMismatch,
                 "scalar");
}

}  // namespace
}  // namespace infernode::test
