#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("MaxUnpool puts elements where MaxPool found them") {
  check_op(
      "(float[1,1,2] X, int64[1,1,2] I) => (float[1,1,4] Y) { Y = MaxUnpool<kernel_shape=[2], strides=[2]>(X, I) }", 9,
      {f32({1, 1, 2}, {5, 6}), i64({1, 1, 2}, {1, 2})}, {f32({1, 1, 4}, {0, 5, 6, 0})});
  check_op(
      "(float16[1,1,2] X, int64[1,1,2] I) => (float16[1,1,4] Y) { Y = MaxUnpool<kernel_shape=[2], strides=[2]>(X, I) }",
      22, {f16({1, 1, 2}, {5, 6}), i64({1, 1, 2}, {0, 3})}, {f16({1, 1, 4}, {5, 0, 0, 6})});
}

TEST_CASE("A greater output_shape of MaxUnpool adds zeros behind each axis") {
  check_op(
      "(float[1,1,1,1] X, int64[1,1,1,1] I, int64[4] S) => (float[1,1,2,3] Y) { "
      "Y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(X, I, S) }",
      11, {f32({1, 1, 1, 1}, {7}), i64({1, 1, 1, 1}, {3}), i64({4}, {1, 1, 2, 3})},
      {f32({1, 1, 2, 3}, {0, 0, 0, 0, 7, 0})});
}

TEST_CASE("MaxUnpool refuses places outside") {
  check_op_fails("(float[1,1,1] X, int64[1,1,1] I) => (Y) { Y = MaxUnpool<kernel_shape=[2]>(X, I) }", 9,
                 {f32({1, 1, 1}, {5}), i64({1, 1, 1}, {2})}, ErrorCode::InvalidArgument, "lies outside");
  check_op_fails("(float[1,1,1] X, int64[1,1,1] I) => (Y) { Y = MaxUnpool<kernel_shape=[2]>(X, I) }", 9,
                 {f32({1, 1, 1}, {5}), i64({1, 1, 1}, {-1})}, ErrorCode::InvalidArgument, "lies outside");
  check_op_fails("(float[1,1,1] X, int64[1,1,1] I, int64[3] S) => (Y) { Y = MaxUnpool<kernel_shape=[2]>(X, I, S) }", 9,
                 {f32({1, 1, 1}, {5}), i64({1, 1, 1}, {1}), i64({3}, {1, 1, 1})}, ErrorCode::ShapeMismatch,
                 "does not hold");
}

}  // namespace
}  // namespace infernode::test
