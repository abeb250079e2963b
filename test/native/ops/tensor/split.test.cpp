#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Split cuts equal parts") {
  const Tensor x = iota(DType::Float32, {2, 4});
  const Tensor left = f32({2, 2}, {0, 1, 4, 5}), right = f32({2, 2}, {2, 3, 6, 7});
  check_op("(float[A,B] X) => (float[C,D] Y, float[E,F] Z) { Y, Z = Split<axis=1>(X) }", 2, {x}, {left, right});
  check_op("(float[A,B] X) => (float[C,D] Y, float[E,F] Z) { Y, Z = Split<axis=-1>(X) }", 11, {x}, {left, right});
  check_op("(float[A,B] X) => (float[C,D] Y, float[E,F] Z) { Y, Z = Split<axis=1>(X) }", 13, {x}, {left, right});
  check_op("(float[A,B] X) => (float[C,D] Y, float[E,F] Z) { Y, Z = Split<num_outputs=2>(X) }", 18, {x},
           {f32({1, 4}, {0, 1, 2, 3}), f32({1, 4}, {4, 5, 6, 7})});
}

TEST_CASE("Split cuts parts of given sizes, in an attribute or an input") {
  const Tensor x = iota(DType::Int32, {5});
  const std::vector<Value> parts = {i32({2}, {0, 1}), i32({0}, {}), i32({3}, {2, 3, 4})};
  check_op("(int32[A] X) => (int32[B] P, int32[C] Q, int32[D] R) { P, Q, R = Split<split=[2,0,3]>(X) }", 2, {x}, parts);
  check_op("(int32[A] X, int64[3] s) => (int32[B] P, int32[C] Q, int32[D] R) { P, Q, R = Split(X, s) }", 13,
           {x, i64({3}, {2, 0, 3})}, parts);
  check_op("(float[A] X, float[2] s) => (float[B] P, float[C] Q) { P, Q = Split(X, s) }", 1,
           {f32({3}, {1, 2, 3}), f32({2}, {1, 2})}, {f32({1}, {1}), f32({2}, {2, 3})});
}

TEST_CASE("Split leaves the rest to the last outputs from version 18 on") {
  const Tensor x = iota(DType::Int32, {7});
  check_op("(int32[A] X) => (int32[B] P, int32[C] Q, int32[D] R) { P, Q, R = Split<num_outputs=3>(X) }", 18, {x},
           {i32({3}, {0, 1, 2}), i32({3}, {3, 4, 5}), i32({1}, {6})});
  check_op("(int32[A] X) => (int32[B] P, int32[C] Q, int32[D] R, int32[E] S) { P, Q, R, S = Split<num_outputs=4>(X) }",
           18, {iota(DType::Int32, {5})}, {i32({2}, {0, 1}), i32({2}, {2, 3}), i32({1}, {4}), i32({0}, {})});
}

TEST_CASE("Split refuses sizes that do not add up") {
  const Tensor x = iota(DType::Int32, {5});
  check_op_fails("(int32[A] X) => (P, Q) { P, Q = Split(X) }", 13, {x}, ErrorCode::InvalidArgument, "equal parts");
  check_op_fails("(int32[A] X, int64[2] s) => (P, Q) { P, Q = Split(X, s) }", 13, {x, i64({2}, {2, 2})},
                 ErrorCode::InvalidArgument, "do not split a dim of 5");
  check_op_fails("(int32[A] X, int64[2] s) => (P, Q) { P, Q = Split(X, s) }", 13, {x, i64({2}, {-1, 6})},
                 ErrorCode::InvalidArgument, "do not split");
  check_op_fails("(int32[A] X) => (P, Q) { P, Q = Split<num_outputs=3>(X) }", 18, {x}, ErrorCode::InvalidArgument,
                 "num_outputs");
}

TEST_CASE("Split passes on contents") {
  CHECK(infer_contents("(int64[3] X, int64[2] s) => (P, Q) { P, Q = Split(X, s) }", 13,
                       {i64({3}, {4, 5, 6}), i64({2}, {2, 1})}) == "[4,5]");
}

}  // namespace
}  // namespace infernode::test
