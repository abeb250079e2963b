#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("DeformConv without offsets is Conv") {
  const Tensor x = noise({2, 4, 7, 6}), w = noise({6, 2, 3, 3}, 1, 2), b = noise({6}, 1, 3);
  const char* attributes = "group=2, pads=[1,1,1,1], strides=[2,1]";
  const std::vector<Value> expected =
      run_op(cat("(X, W, B) => (Y) { Y = Conv<", attributes, ">(X, W, B) }"), 22, {x, w, b});
  Tensor none = Tensor::make(DType::Float32, {2, 18, 4, 6});
  for (float& v : none.mutable_span<float>()) v = 0;
  check_op(cat("(X, W, O, B) => (Y) { Y = DeformConv<", attributes, ">(X, W, O, B) }"), 22, {x, w, none, b}, expected);
}

TEST_CASE("DeformConv interpolates between pixels and fades outside") {
  check_op("(X, W, O, B, M) => (Y) { Y = DeformConv(X, W, O, B, M) }", 19,
           {f32({1, 1, 2, 2}, {1, 2, 3, 4}), f32({1, 1, 1, 1}, {1}),
            f32({1, 2, 2, 2}, {0.5, 0, 0, 0.5, 0.5, 0.5, -0.5, 9}), f32({1}, {10}), f32({1, 1, 2, 2}, {1, 2, 1, 1})},
           {f32({1, 1, 2, 2}, {12.5, 12, 11.5, 10})});
  check_float_types("(X, W, O, B, M) => (Y) { Y = DeformConv<offset_group=2, pads=[1,1,1,1]>(X, W, O, B, M) }", 22,
                    {noise({1, 4, 5, 5}), noise({3, 4, 3, 3}, 0.3f, 2), noise({1, 36, 5, 5}, 0, 3), noise({3}, 1, 4),
                     noise({1, 18, 5, 5}, 1, 5)});
}

TEST_CASE("DeformConv refuses offsets of another shape") {
  check_op_fails("(X, W, O) => (Y) { Y = DeformConv(X, W, O) }", 19,
                 {noise({1, 1, 2, 2}), noise({1, 1, 1, 1}), noise({1, 1, 2, 2})}, ErrorCode::ShapeMismatch,
                 "offset is");
}

}  // namespace
}  // namespace infernode::test
