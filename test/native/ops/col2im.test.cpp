#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Col2Im adds overlapping blocks") {
  check_op("(float[N,K,L] X, int64[2] i, int64[2] b) => (float Y) { Y = Col2Im(X, i, b) }", 18,
           {f32({1, 2, 2}, {1, 2, 3, 4}), i64({2}, {1, 3}), i64({2}, {1, 2})}, {f32({1, 1, 1, 3}, {1, 5, 4})});
  check_op(
      "(float[N,K,L] X, int64[1] i, int64[1] b) => (float Y) { Y = Col2Im<pads=[1,0], strides=[2], dilations=[2]>(X, "
      "i, b) }",
      18, {f32({1, 2, 2}, {1, 2, 3, 4}), i64({1}, {4}), i64({1}, {2})}, {f32({1, 1, 4}, {0, 5, 0, 4})});
  check_op("(int64[N,K,L] X, int64[1] i, int64[1] b) => (int64 Y) { Y = Col2Im(X, i, b) }", 18,
           {i64({1, 4, 1}, {1, 2, 3, 4}), i64({1}, {2}), i64({1}, {2})}, {i64({1, 2, 2}, {1, 2, 3, 4})});
}

TEST_CASE("Col2Im refuses blocks that do not fit the image") {
  check_op_fails("(float[N,K,L] X, int64[1] i, int64[1] b) => (Y) { Y = Col2Im(X, i, b) }", 18,
                 {f32({1, 2, 1}, {1, 2}), i64({1}, {4}), i64({1}, {2})}, ErrorCode::ShapeMismatch,
                 "does not hold 3 blocks");
  check_op_fails("(float[N,K,L] X, int64[1] i, int64[1] b) => (Y) { Y = Col2Im<strides=[0]>(X, i, b) }", 18,
                 {f32({1, 2, 1}, {1, 2}), i64({1}, {2}), i64({1}, {2})}, ErrorCode::InvalidArgument, "");
  CHECK(infer_op("(float[N,K,L] X, int64[2] i, int64[2] b) => (Y) { Y = Col2Im(X, i, b) }", 18,
                 {Value{}, i64({2}, {5, 6}), i64({2}, {1, 1})}) == "tensor(float)[N,K,5,6]");
}

}  // namespace
}  // namespace infernode::test
