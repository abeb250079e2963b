#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("ArgMax and ArgMin find the first, or last, of equal elements") {
  const Tensor x = f32({2, 4}, {1, 5, 5, 0, 7, 2, 2, 7});
  check_op("(float[A,B] X) => (int64[C,D] Y) { Y = ArgMax<axis=1>(X) }", 1, {x}, {i64({2, 1}, {1, 0})});
  check_op("(float[A,B] X) => (int64[C] Y) { Y = ArgMax<axis=-1, keepdims=0, select_last_index=1>(X) }", 12, {x},
           {i64({2}, {2, 3})});
  check_op("(float[A,B] X) => (int64[C] Y) { Y = ArgMin<axis=1, keepdims=0>(X) }", 13, {x}, {i64({2}, {3, 1})});
  check_op("(float[A,B] X) => (int64[C] Y) { Y = ArgMin<axis=1, keepdims=0, select_last_index=1>(X) }", 13, {x},
           {i64({2}, {3, 2})});
  check_op("(float[A,B] X) => (int64[C,D] Y) { Y = ArgMax(X) }", 11, {x}, {i64({1, 4}, {1, 0, 0, 1})});
}

TEST_CASE("ArgMax works on inner axes and other types") {
  check_op("(int32[A,B,C] X) => (int64[D,E] Y) { Y = ArgMax<axis=1, keepdims=0>(X) }", 13,
           {i32({2, 2, 3}, {1, 9, 3, 4, 5, 3, -1, -2, -3, -1, -9, 0})}, {i64({2, 3}, {1, 0, 0, 0, 0, 1})});
  check_op("(float16[A] X) => (int64 Y) { Y = ArgMax<keepdims=0>(X) }", 13, {f16({3}, {-1, 2, 1})}, {i64({}, {1})});
  check_op("(bfloat16[A] X) => (int64 Y) { Y = ArgMin<keepdims=0>(X) }", 13, {bf16({3}, {-1, 2, 1})}, {i64({}, {0})});
  check_op("(uint8[A] X) => (int64 Y) { Y = ArgMax<keepdims=0>(X) }", 13, {u8({3}, {3, 255, 1})}, {i64({}, {1})});
  check_op("(float[A,B] X) => (int64[C,D] Y) { Y = ArgMax<axis=1>(X) }", 13, {f32({0, 3}, {})}, {i64({0, 1}, {})});
}

TEST_CASE("ArgMax takes a NaN for the greatest element") {
  check_op("(float[A] X) => (int64 Y) { Y = ArgMax<keepdims=0>(X) }", 13, {f32({4}, {1, kNaN, 3, kNaN})},
           {i64({}, {1})});
  check_op("(double[A] X) => (int64 Y) { Y = ArgMin<keepdims=0>(X) }", 13, {f64({3}, {1, double(kNaN), 0})},
           {i64({}, {1})});
}

TEST_CASE("ArgMax refuses an empty axis") {
  check_op_fails("(float[A,B] X) => (Y) { Y = ArgMax<axis=1>(X) }", 13, {f32({2, 0}, {})}, ErrorCode::InvalidArgument,
                 "no elements");
  check_op_fails("(float[A,B] X) => (Y) { Y = ArgMax<axis=2>(X) }", 13, {f32({1, 1}, {0})}, ErrorCode::InvalidArgument,
                 "axis");
}

}  // namespace
}  // namespace infernode::test
