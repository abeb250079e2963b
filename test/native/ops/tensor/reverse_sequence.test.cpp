#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("ReverseSequence reverses the beginning of each sequence") {
  const Tensor x = iota(DType::Float32, {4, 2});
  check_op("(float[T,B] X, int64[C] n) => (float[D,E] Y) { Y = ReverseSequence(X, n) }", 10, {x, i64({2}, {3, 1})},
           {f32({4, 2}, {4, 1, 2, 3, 0, 5, 6, 7})});
  check_op("(float[B,T,K] X, int64[C] n) => (float[D,E,F] Y) { Y = ReverseSequence<batch_axis=0, time_axis=1>(X, n) }",
           10, {iota(DType::Float32, {2, 3, 2}), i64({2}, {0, 3})},
           {f32({2, 3, 2}, {0, 1, 2, 3, 4, 5, 10, 11, 8, 9, 6, 7})});
  check_op("(string[T,B] X, int64[C] n) => (string[D,E] Y) { Y = ReverseSequence(X, n) }", 10,
           {str({2, 1}, {"a", "b"}), i64({1}, {2})}, {str({2, 1}, {"b", "a"})});
}

TEST_CASE("ReverseSequence refuses lengths beyond the sequence") {
  const Tensor x = iota(DType::Float32, {4, 2});
  check_op_fails("(float[T,B] X, int64[C] n) => (Y) { Y = ReverseSequence(X, n) }", 10, {x, i64({2}, {5, 1})},
                 ErrorCode::InvalidArgument, "sequence length 5");
  check_op_fails("(float[T,B] X, int64[C] n) => (Y) { Y = ReverseSequence(X, n) }", 10, {x, i64({1}, {1})},
                 ErrorCode::ShapeMismatch, "");
}

}  // namespace
}  // namespace infernode::test
