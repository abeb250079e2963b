#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("NonZero lists indices in row-major order") {
  check_op("(float[A,B] X) => (int64[2,C] Y) { Y = NonZero(X) }", 9, {f32({2, 3}, {0, 1, -0.0f, kNaN, 0, 2})},
           {i64({2, 3}, {0, 1, 1, 1, 0, 2})});
  check_op("(bool[A] X) => (int64[1,C] Y) { Y = NonZero(X) }", 13, {b8({3}, {true, false, true})},
           {i64({1, 2}, {0, 2})});
  check_op("(int32[A,B,C] X) => (int64[3,D] Y) { Y = NonZero(X) }", 13, {i32({2, 1, 2}, {0, 1, 2, 0})},
           {i64({3, 2}, {0, 1, 0, 0, 1, 0})});
  check_op("(float16[A] X) => (int64[1,C] Y) { Y = NonZero(X) }", 13, {f16({3}, {-0.0, 0.5, 0})}, {i64({1, 1}, {1})});
  check_op("(string[A] X) => (int64[1,C] Y) { Y = NonZero(X) }", 13, {str({2}, {"", "a"})}, {i64({1, 1}, {1})});
  check_op("(float[A,B] X) => (int64[2,C] Y) { Y = NonZero(X) }", 13, {f32({3, 0}, {})}, {i64({2, 0}, {})});
  check_op("(float X) => (int64[0,C] Y) { Y = NonZero(X) }", 13, {f32({}, {3})}, {i64({0, 1}, {})});
}

TEST_CASE("Compress keeps what the condition selects") {
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  check_op("(float[A,B] X, bool[C] c) => (float[D,E] Y) { Y = Compress<axis=0>(X, c) }", 9,
           {x, b8({3}, {false, true, true})}, {f32({2, 2}, {3, 4, 5, 6})});
  check_op("(float[A,B] X, bool[C] c) => (float[D,E] Y) { Y = Compress<axis=-1>(X, c) }", 11,
           {x, b8({2}, {false, true})}, {f32({3, 1}, {2, 4, 6})});
  check_op("(float[A,B] X, bool[C] c) => (float[D] Y) { Y = Compress(X, c) }", 11,
           {x, b8({5}, {false, true, false, false, true})}, {f32({2}, {2, 5})});
  check_op("(string[A] X, bool[C] c) => (string[D] Y) { Y = Compress(X, c) }", 11,
           {str({2}, {"a", "b"}), b8({2}, {false, true})}, {str({1}, {"b"})});
  check_op_fails("(float[A,B] X, bool[C] c) => (Y) { Y = Compress<axis=1>(X, c) }", 11,
                 {x, b8({3}, {false, true, true})}, ErrorCode::InvalidArgument, "selects element 2");
}

}  // namespace
}  // namespace infernode::test
