#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Expand broadcasts both ways") {
  check_op("(float[A,1] X, int64[2] s) => (float[B,C] Y) { Y = Expand(X, s) }", 8,
           {f32({2, 1}, {1, 2}), i64({2}, {2, 3})}, {f32({2, 3}, {1, 1, 1, 2, 2, 2})});
  check_op("(float[A,1] X, int64[3] s) => (float[B,C,D] Y) { Y = Expand(X, s) }", 13,
           {f32({2, 1}, {1, 2}), i64({3}, {2, 1, 2})}, {f32({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2})});
  check_op("(float[3] X, int64[1] s) => (float[A] Y) { Y = Expand(X, s) }", 13, {f32({3}, {1, 2, 3}), i64({1}, {1})},
           {f32({3}, {1, 2, 3})});
  check_op("(int64 X, int64[2] s) => (int64[A,B] Y) { Y = Expand(X, s) }", 13, {i64({}, {9}), i64({2}, {2, 2})},
           {i64({2, 2}, {9, 9, 9, 9})});
  check_op("(string[1] X, int64[1] s) => (string[A] Y) { Y = Expand(X, s) }", 13, {str({1}, {"q"}), i64({1}, {3})},
           {str({3}, {"q", "q", "q"})});
  check_op("(float[1] X, int64[1] s) => (float[A] Y) { Y = Expand(X, s) }", 13, {f32({1}, {1}), i64({1}, {0})},
           {f32({0}, {})});
}

TEST_CASE("Expand refuses shapes that do not broadcast") {
  check_op_fails("(float[A] X, int64[1] s) => (Y) { Y = Expand(X, s) }", 13, {f32({3}, {1, 2, 3}), i64({1}, {2})},
                 ErrorCode::ShapeMismatch, "");
}

TEST_CASE("Expand knows symbolic shapes and repeats contents") {
  CHECK(infer_op("(float[N,1] X, int64[2] s) => (Y) { Y = Expand(X, s) }", 13, {Value{}, i64({2}, {1, 5})}) ==
        "tensor(float)[N,5]");
  CHECK(infer_op("(float[N,1] X, int64[3] s) => (Y) { Y = Expand(X, s) }", 13) == "tensor(float)[?,?,?]");
  CHECK(infer_contents("(int64[1] X, int64[1] s) => (Y) { Y = Expand(X, s) }", 13, {i64({1}, {4}), i64({1}, {3})}) ==
        "[4,4,4]");
}

TEST_CASE("Tile repeats each axis") {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  check_op("(float[A,B] X, int64[2] r) => (float[C,D] Y) { Y = Tile(X, r) }", 6, {x, i64({2}, {2, 2})},
           {f32({4, 4}, {1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4})});
  check_op("(float[A,B] X, int64[2] r) => (float[C,D] Y) { Y = Tile(X, r) }", 13, {x, i64({2}, {1, 3})},
           {f32({2, 6}, {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4})});
  check_op("(float[A,B] X, int64[2] r) => (float[C,D] Y) { Y = Tile(X, r) }", 13, {x, i64({2}, {0, 3})},
           {f32({0, 6}, {})});
  check_op("(string[A] X, int64[1] r) => (string[B] Y) { Y = Tile(X, r) }", 13, {str({2}, {"a", "b"}), i64({1}, {2})},
           {str({4}, {"a", "b", "a", "b"})});
  check_op("(float[A,B] X, float t, float a) => (float[C,D] Y) { Y = Tile(X, t, a) }", 1,
           {x, f32({}, {2}), f32({}, {1})}, {f32({2, 4}, {1, 2, 1, 2, 3, 4, 3, 4})});
}

TEST_CASE("Tile refuses wrong repeats") {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  check_op_fails("(float[A,B] X, int64[1] r) => (Y) { Y = Tile(X, r) }", 13, {x, i64({1}, {2})},
                 ErrorCode::InvalidArgument, "repeats");
  check_op_fails("(float[A,B] X, int64[2] r) => (Y) { Y = Tile(X, r) }", 13, {x, i64({2}, {-1, INT64_MAX})},
                 ErrorCode::InvalidArgument, "negative");
  CHECK(infer_op("(float[N,3] X, int64[2] r) => (Y) { Y = Tile(X, r) }", 13, {Value{}, i64({2}, {2, 2})}) ==
        "tensor(float)[2*N,6]");
}

}  // namespace
}  // namespace infernode::test
