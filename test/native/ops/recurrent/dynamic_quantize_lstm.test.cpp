#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g ";

TEST_CASE("DynamicQuantizeLSTM refuses weights and scales that do not fit") {
  const std::string call =
      cat(kHeader,
          "(X, W, R, s, z) => (Y) { Y = com.microsoft.DynamicQuantizeLSTM<hidden_size=1>(X, W, R, , , "
          ", , , s, z, s, z) }");
  const Tensor x = noise({2, 1, 3}), w = iota(DType::Int8, {1, 3, 4}), r = iota(DType::Int8, {1, 1, 4});
  const Tensor s = f32({1}, {0.1f}), z = i8({1}, {0});
  CHECK(run_op(call, 21, {x, w, r, s, z})[0].tensor().shape() == Shape{2, 1, 1, 1});
  check_op_fails(call, 21, {x, iota(DType::Int8, {1, 2, 4}), r, s, z}, ErrorCode::ShapeMismatch, "do not fit X");
  check_op_fails(call, 21, {x, w, r, f32({3}, {1, 2, 3}), z}, ErrorCode::ShapeMismatch, "do not fit a weight");
  check_op_fails(call, 21, {x, iota(DType::Int8, {3, 4}), r, s, z}, ErrorCode::ShapeMismatch, "");
}

TEST_CASE("DynamicQuantizeLSTM of nothing gives nothing") {
  const std::string call =
      cat(kHeader,
          "(X, W, R, s, z) => (Y) { Y = com.microsoft.DynamicQuantizeLSTM<hidden_size=0>(X, W, R, , , "
          ", , , s, z, s, z) }");
  const Tensor x = noise({2, 1, 3}), w = iota(DType::Int8, {1, 3, 0}), r = iota(DType::Int8, {1, 0, 0});
  CHECK(run_op(call, 21, {x, w, r, f32({1}, {0.1f}), i8({1}, {0})})[0].tensor().shape() == Shape{2, 1, 1, 0});
  CHECK(run_op(call, 21, {x, w, r, f32({0}, {}), i8({0}, {})})[0].tensor().shape() == Shape{2, 1, 1, 0});
}

}  // namespace
}  // namespace infernode::test
