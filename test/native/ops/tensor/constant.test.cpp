#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Constant holds its value in any of its attributes") {
  check_op("() => (Y) { Y = Constant<value = float[2] {1.0, 2.0}>() }", 1, {}, {f32({2}, {1, 2})});
  check_op("() => (Y) { Y = Constant<value_int = 7>() }", 12, {}, {i64({}, {7})});
  check_op("() => (Y) { Y = Constant<value_ints = [7, 8]>() }", 12, {}, {i64({2}, {7, 8})});
  check_op("() => (Y) { Y = Constant<value_float = 1.5>() }", 12, {}, {f32({}, {1.5})});
  check_op("() => (Y) { Y = Constant<value_floats = [1.5, 2.5]>() }", 13, {}, {f32({2}, {1.5, 2.5})});
  check_op("() => (Y) { Y = Constant<value_string = \"a\">() }", 12, {}, {str({}, {"a"})});
  check_op("() => (Y) { Y = Constant<value_strings = [\"a\", \"b\"]>() }", 12, {}, {str({2}, {"a", "b"})});
  check_op_fails("() => (Y) { Y = Constant() }", 13, {}, ErrorCode::InvalidModel, "none of the attributes");
}

TEST_CASE("ConstantOfShape fills") {
  check_op("(S) => (Y) { Y = ConstantOfShape(S) }", 9, {i64({2}, {2, 3})}, {f32({2, 3}, {0, 0, 0, 0, 0, 0})});
  check_op("(S) => (Y) { Y = ConstantOfShape<value = int32[1] {5}>(S) }", 9, {i64({1}, {3})}, {i32({3}, {5, 5, 5})});
  check_op("(S) => (Y) { Y = ConstantOfShape<value = int64[1] {5}>(S) }", 9, {i64({0}, {})}, {i64({}, {5})});
  check_op("(S) => (Y) { Y = ConstantOfShape(S) }", 9, {i64({2}, {0, 3})}, {f32({0, 3}, {})});
  check_op_fails("(S) => (Y) { Y = ConstantOfShape(S) }", 9, {i64({1}, {-3})}, ErrorCode::InvalidArgument, "negative");
  check_op_fails("(S) => (Y) { Y = ConstantOfShape(S) }", 9, {i64({2}, {INT64_MAX, INT64_MAX})}, ErrorCode::OutOfMemory,
                 "");
  CHECK(infer_op("(float[N,3] X) => (Y) { S = Shape(X) Y = ConstantOfShape(S) }", 9) == "tensor(float)[N,3]");
}

TEST_CASE("EyeLike puts ones on a diagonal") {
  const Tensor x = i32({2, 3}, {9, 9, 9, 9, 9, 9});
  check_op("(int32[N,M] X) => (Y) { Y = EyeLike(X) }", 9, {x}, {i32({2, 3}, {1, 0, 0, 0, 1, 0})});
  check_op("(X) => (Y) { Y = EyeLike<k=1, dtype=1>(X) }", 9, {x}, {f32({2, 3}, {0, 1, 0, 0, 0, 1})});
  check_op("(X) => (Y) { Y = EyeLike<k=-1>(X) }", 9, {x}, {i32({2, 3}, {0, 0, 0, 1, 0, 0})});
  check_op("(X) => (Y) { Y = EyeLike<k=9000000000000000000, dtype=16>(X) }", 22, {x},
           {bf16({2, 3}, {0, 0, 0, 0, 0, 0})});
  check_op("(int32[N,M] X) => (Y) { Y = EyeLike(X) }", 9, {i32({0, 2}, {})}, {i32({0, 2}, {})});
  check_op_fails("(X) => (Y) { Y = EyeLike(X) }", 9, {f32({2}, {1, 2})}, ErrorCode::ShapeMismatch, "matrix");
}

}  // namespace
}  // namespace infernode::test
