#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g ";

TEST_CASE("8-bit pools work on planes and on channels-last tensors") {
  const std::string average =
      "(X, s, t) => (Y) { Y = com.microsoft.QLinearAveragePool<kernel_shape=[2], channels_last=";
  check_op(cat(kHeader, average, "0>(X, s, , t) }"), 21,
           {u8({1, 2, 3}, {1, 3, 5, 10, 20, 31}), f32({}, {1}), f32({}, {1})}, {u8({1, 2, 2}, {2, 4, 15, 26})});
  check_op(cat(kHeader, average, "1>(X, s, , t) }"), 21,
           {u8({1, 3, 2}, {1, 10, 3, 20, 5, 31}), f32({}, {1}), f32({}, {1})}, {u8({1, 2, 2}, {2, 15, 4, 26})});
  check_op(cat(kHeader, "(X) => (Y) { Y = com.microsoft.NhwcMaxPool<kernel_shape=[2], pads=[1, 0]>(X) }"), 21,
           {i8({1, 2, 2}, {-128, 5, -3, 4})}, {i8({1, 2, 2}, {-128, 5, -3, 5})});
  check_op(cat(kHeader, "(X, s, z) => (Y) { Y = com.microsoft.QLinearGlobalAveragePool(X, s, z, s, z) }"), 21,
           {i8({1, 1, 2, 2}, {-128, -128, 127, 127}), f32({}, {0.5f}), i8({}, {3})}, {i8({1, 1, 1, 1}, {-1})});
}

TEST_CASE("means over planes of any size") {
  std::vector<double> codes(1500, 100);
  codes.resize(2101, -40);
  codes.back() = 60;
  check_op(cat(kHeader, "(X, s, z) => (Y) { Y = com.microsoft.QLinearGlobalAveragePool(X, s, z, s, z) }"), 21,
           {tensor_as(DType::Int8, {1, 1, 2101}, codes), f32({}, {0.5f}), i8({}, {3})}, {i8({1, 1, 1}, {60})});
}

TEST_CASE("8-bit pools of no images answer whatever the other dims are") {
  constexpr std::int64_t kMany = std::int64_t{1} << 31;
  check_op(cat(kHeader, "(X) => (Y) { Y = com.microsoft.NhwcMaxPool<kernel_shape=[2]>(X) }"), 21,
           {u8({0, kMany, 2}, {})}, {u8({0, kMany - 1, 2}, {})});
  check_op(cat(kHeader, "(X, s) => (Y) { Y = com.microsoft.QLinearAveragePool<kernel_shape=[2]>(X, s, , s) }"), 21,
           {u8({0, 2, kMany}, {}), f32({}, {1})}, {u8({0, 2, kMany - 1}, {})});
}

TEST_CASE("8-bit pools refuse windows that do not fit") {
  check_op_fails(cat(kHeader, "(X) => (Y) { Y = com.microsoft.NhwcMaxPool<kernel_shape=[5]>(X) }"), 21,
                 {i8({1, 2, 2}, {1, 5, 3, 4})}, ErrorCode::ShapeMismatch, "does not fit");
  check_op_fails(cat(kHeader, "(X) => (Y) { Y = com.microsoft.NhwcMaxPool<kernel_shape=[2, 2]>(X) }"), 21,
                 {i8({1, 2, 2}, {1, 5, 3, 4})}, ErrorCode::ShapeMismatch, "");
  check_op_fails(cat(kHeader, "(X) => (Y) { Y = com.microsoft.NhwcMaxPool<kernel_shape=[]>(X) }"), 21,
                 {i8({2, 2}, {1, 5, 3, 4})}, ErrorCode::ShapeMismatch, "rank");
}

}  // namespace
}  // namespace infernode::test
