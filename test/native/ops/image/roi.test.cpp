#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("RoiAlign averages samples of a region") {
  const Tensor x = iota(DType::Float32, {1, 1, 4, 4});
  check_op(
      "(float[N,C,H,W] X, float[R,4] r, int64[R] b) => (float Y) { Y = RoiAlign<output_height=2, output_width=2, "
      "sampling_ratio=1, "
      "coordinate_transformation_mode=\"output_half_pixel\">(X, r, b) }",
      16, {x, f32({1, 4}, {0, 0, 2, 2}), i64({1}, {0})}, {f32({1, 1, 2, 2}, {2.5f, 3.5f, 6.5f, 7.5f})});
  check_op("(float[N,C,H,W] X, float[R,4] r, int64[R] b) => (float Y) { Y = RoiAlign<sampling_ratio=2>(X, r, b) }", 16,
           {x, f32({1, 4}, {1, 1, 3, 3}), i64({1}, {0})}, {f32({1, 1, 1, 1}, {7.5f})});
  check_op("(float[N,C,H,W] X, float[R,4] r, int64[R] b) => (float Y) { Y = RoiAlign<spatial_scale=0.5>(X, r, b) }", 10,
           {x, f32({1, 4}, {2, 2, 4, 4}), i64({1}, {0})}, {f32({1, 1, 1, 1}, {7.5f})});
  check_op("(float[N,C,H,W] X, float[0,4] r, int64[0] b) => (float Y) { Y = RoiAlign(X, r, b) }", 16,
           {x, f32({0, 4}, {}), i64({0}, {})}, {f32({0, 1, 1, 1}, {})});
}

TEST_CASE("RoiAlign refuses batch entries and regions that make no sense") {
  const Tensor x = iota(DType::Float32, {1, 1, 4, 4});
  check_op_fails("(float[N,C,H,W] X, float[R,4] r, int64[R] b) => (Y) { Y = RoiAlign(X, r, b) }", 16,
                 {x, f32({1, 4}, {0, 0, 1, 1}), i64({1}, {1})}, ErrorCode::InvalidArgument, "batch entry 1");
  check_op_fails("(float[N,C,H,W] X, float[R,4] r, int64[R] b) => (Y) { Y = RoiAlign(X, r, b) }", 16,
                 {x, f32({1, 4}, {0, 0, 1e30f, 1}), i64({1}, {0})}, ErrorCode::InvalidArgument,
                 "pixels for each output pixel");
  CHECK(infer_op("(float[N,C,H,W] X, float[R,4] r, int64[R] b) => (Y) { Y = RoiAlign<output_height=3>(X, r, b) }",
                 16) == "tensor(float)[R,C,3,1]");
}

TEST_CASE("MaxRoiPool takes the greatest pixel of each bin") {
  const Tensor x = iota(DType::Float32, {2, 1, 4, 4});
  check_op("(float[N,C,H,W] X, float[R,5] r) => (float Y) { Y = MaxRoiPool<pooled_shape=[2,2]>(X, r) }", 1,
           {x, f32({2, 5}, {0, 0, 0, 3, 3, 1, 1, 1, 1, 1})}, {f32({2, 1, 2, 2}, {5, 7, 13, 15, 21, 21, 21, 21})});
  check_op(
      "(float[N,C,H,W] X, float[R,5] r) => (float Y) { Y = MaxRoiPool<pooled_shape=[1,1], spatial_scale=0.5>(X, r) }",
      1, {x, f32({1, 5}, {0, 0, 0, 2, 2})}, {f32({1, 1, 1, 1}, {5})});
  check_op("(float[N,C,H,W] X, float[R,5] r) => (float Y) { Y = MaxRoiPool<pooled_shape=[1,1]>(X, r) }", 22,
           {x, f32({1, 5}, {0, 90, 90, 99, 99})}, {f32({1, 1, 1, 1}, {0})});
  check_op_fails("(float[N,C,H,W] X, float[R,5] r) => (Y) { Y = MaxRoiPool<pooled_shape=[1,1]>(X, r) }", 1,
                 {x, f32({1, 5}, {2, 0, 0, 1, 1})}, ErrorCode::InvalidArgument, "batch entry 2");
}

}  // namespace
}  // namespace infernode::test
