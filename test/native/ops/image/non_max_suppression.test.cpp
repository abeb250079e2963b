#include "ops/op_test.h"

namespace infernode::test {
namespace {

constexpr const char* kText =
    "(float[N,K,4] b, float[N,C,K] s, int64[1] m, float[1] i, float[1] t) => (int64[A,3] Y) { Y = NonMaxSuppression(b, "
    "s, m, i, t) }";

TEST_CASE("NonMaxSuppression keeps the best of overlapping boxes") {
  const Tensor boxes = f32({1, 4, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11, 1, 11, 0, 10}),
               scores = f32({1, 1, 4}, {0.5f, 0.9f, 0.8f, 0.8f});
  check_op(kText, 11, {boxes, scores, i64({1}, {9}), f32({1}, {0.5f}), f32({1}, {0})},
           {i64({2, 3}, {0, 0, 1, 0, 0, 2})});
  check_op(kText, 11, {boxes, scores, i64({1}, {9}), f32({1}, {1}), f32({1}, {0.6f})},
           {i64({3, 3}, {0, 0, 1, 0, 0, 2, 0, 0, 3})});
  check_op(kText, 10, {boxes, scores, i64({1}, {1}), f32({1}, {0.5f}), f32({1}, {0})}, {i64({1, 3}, {0, 0, 1})});
  check_op("(float[N,K,4] b, float[N,C,K] s) => (int64[A,3] Y) { Y = NonMaxSuppression(b, s) }", 11, {boxes, scores},
           {i64({0, 3}, {})});
}

TEST_CASE("NonMaxSuppression takes centers and sizes") {
  check_op(
      "(float[N,K,4] b, float[N,C,K] s, int64 m) => (int64[A,3] Y) { Y = NonMaxSuppression<center_point_box=1>(b, s, "
      "m) }",
      11,
      {f32({1, 2, 4}, {0.5f, 0.5f, 1, 1, 2.5f, 0.5f, 1, 1}), f32({1, 2, 2}, {0.1f, 0.2f, 0.4f, 0.3f}), i64({}, {2})},
      {i64({4, 3}, {0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1})});
}

TEST_CASE("NonMaxSuppression refuses shapes and thresholds that do not fit") {
  const Tensor boxes = f32({1, 1, 4}, {0, 0, 1, 1});
  check_op_fails(kText, 11, {boxes, f32({1, 1, 2}, {1, 1}), i64({1}, {1}), f32({1}, {0.5f}), f32({1}, {0})},
                 ErrorCode::ShapeMismatch, "boxes");
  check_op_fails(kText, 11, {boxes, f32({1, 1, 1}, {1}), i64({1}, {1}), f32({1}, {1.5f}), f32({1}, {0})},
                 ErrorCode::InvalidArgument, "iou_threshold");
}

}  // namespace
}  // namespace infernode::test
