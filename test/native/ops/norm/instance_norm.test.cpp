#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("InstanceNormalization normalizes every plane by itself") {
  check_op(
      "(float[N,2,2] X, float[2] S, float[2] B) => (float[N,2,2] Y) { Y = InstanceNormalization<epsilon=0.0>(X, S, B) "
      "}",
      6, {f32({1, 2, 2}, {1, 3, 10, 50}), f32({2}, {1, 2}), f32({2}, {0, 5})}, {f32({1, 2, 2}, {-1, 1, 3, 7})});
  check_float_types("(X, S, B) => (Y) { Y = InstanceNormalization(X, S, B) }", 22,
                    {noise({2, 3, 5, 9}), noise({3}), noise({3}, 1, 2)});
}

TEST_CASE("GroupNormalization scales groups in version 18 and channels from 21 on") {
  const Tensor x = f32({1, 4, 1}, {1, 3, 10, 50});
  check_op(
      "(float[1,4,1] X, float[2] S, float[2] B) => (float[1,4,1] Y) { Y = GroupNormalization<num_groups=2, "
      "epsilon=0.0>(X, S, B) }",
      18, {x, f32({2}, {1, 2}), f32({2}, {0, 5})}, {f32({1, 4, 1}, {-1, 1, 3, 7})});
  check_op(
      "(float[1,4,1] X, float[4] S, float[4] B) => (float[1,4,1] Y) { Y = GroupNormalization<num_groups=2, "
      "epsilon=0.0>(X, S, B) }",
      21, {x, f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 1})}, {f32({1, 4, 1}, {-1, 2, -3, 5})});
  check_float_types("(X, S, B) => (Y) { Y = GroupNormalization<num_groups=3>(X, S, B) }", 21,
                    {noise({2, 6, 5, 9}), noise({6}), noise({6}, 1, 2)});
  check_threads("(X, S, B) => (Y) { Y = GroupNormalization<num_groups=4>(X, S, B) }", 21,
                {noise({2, 32, 40, 40}), noise({32}), noise({32}, 1, 2)});
}

TEST_CASE("GroupNormalization refuses groups that do not divide the channels") {
  check_op_fails("(X, S, B) => (Y) { Y = GroupNormalization<num_groups=3>(X, S, B) }", 21,
                 {noise({1, 4, 2}), noise({4}), noise({4})}, ErrorCode::ShapeMismatch, "do not divide");
  check_op_fails("(X, S, B) => (Y) { Y = GroupNormalization<num_groups=0>(X, S, B) }", 21,
                 {noise({1, 4, 2}), noise({4}), noise({4})}, ErrorCode::InvalidModel, "num_groups");
  check_op_fails("(X, S, B) => (Y) { Y = InstanceNormalization(X, S, B) }", 6,
                 {noise({1, 4, 2}), noise({3}), noise({4})}, ErrorCode::ShapeMismatch, "input 1");
}

}  // namespace
}  // namespace infernode::test
