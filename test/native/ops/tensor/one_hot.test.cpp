#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("OneHot marks the index along a new axis") {
  check_op("(int64[A] i, int64 d, float[2] v) => (float[B,C] Y) { Y = OneHot(i, d, v) }", 9,
           {i64({3}, {0, -1, 5}), i64({}, {3}), f32({2}, {0, 1})}, {f32({3, 3}, {1, 0, 0, 0, 0, 1, 0, 0, 0})});
  check_op("(float[A,B] i, float[1] d, int32[2] v) => (int32[C,D,E] Y) { Y = OneHot<axis=1>(i, d, v) }", 11,
           {f32({1, 2}, {1, 0}), f32({1}, {2}), i32({2}, {7, 9})}, {i32({1, 2, 2}, {7, 9, 9, 7})});
  check_op("(int32 i, int32 d, string[2] v) => (string[A] Y) { Y = OneHot<axis=0>(i, d, v) }", 11,
           {i32({}, {1}), i32({}, {2}), str({2}, {"no", "yes"})}, {str({2}, {"no", "yes"})});
  check_op("(int64[0] i, int64 d, float[2] v) => (float[A,B] Y) { Y = OneHot(i, d, v) }", 11,
           {i64({0}, {}), i64({}, {3}), f32({2}, {0, 1})}, {f32({0, 3}, {})});
}

TEST_CASE("OneHot refuses a depth below one and values that are no pair") {
  check_op_fails("(int64[A] i, int64 d, float[2] v) => (Y) { Y = OneHot(i, d, v) }", 11,
                 {i64({1}, {0}), i64({}, {0}), f32({2}, {0, 1})}, ErrorCode::InvalidArgument, "depth 0");
  check_op_fails("(int64[A] i, int64 d, float[3] v) => (Y) { Y = OneHot(i, d, v) }", 11,
                 {i64({1}, {0}), i64({}, {1}), f32({3}, {0, 1, 2})}, ErrorCode::InvalidArgument, "values");
  CHECK(infer_op("(int64[N] i, int64 d, float[2] v) => (Y) { Y = OneHot(i, d, v) }", 11, {Value{}, i64({}, {4})}) ==
        "tensor(float)[N,4]");
}

}  // namespace
}  // namespace infernode::test
