#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Clip by attributes") {
  check_op("(X) => (Y) { Y = Clip<min=-1.0, max=1.0>(X) }", 6, {f32({4}, {-2, 0.5, 2, kNaN})},
           {f32({4}, {-1, 0.5, 1, kNaN})});
  check_op("(X) => (Y) { Y = Clip<max=1.0>(X) }", 1, {f32({3}, {-kInf, 0, kInf})}, {f32({3}, {-kInf, 0, 1})});
  check_op("(X) => (Y) { Y = Clip<min=0.0>(X) }", 6, {f16({2}, {-2, 2})}, {f16({2}, {0, 2})});
}

TEST_CASE("Clip by inputs, each optional") {
  const char* both = "(X, low, high) => (Y) { Y = Clip(X, low, high) }";
  check_op(both, 11, {f32({3}, {-2, 0, 2}), f32({}, {-1}), f32({}, {1})}, {f32({3}, {-1, 0, 1})});
  check_op("(X, high) => (Y) { Y = Clip(X, , high) }", 13, {f32({3}, {-2, 0, 2}), f32({}, {1})},
           {f32({3}, {-2, 0, 1})});
  check_op("(X, low) => (Y) { Y = Clip(X, low) }", 13, {f32({3}, {-2, 0, 2}), f32({}, {-1})}, {f32({3}, {-1, 0, 2})});
  check_op("(X) => (Y) { Y = Clip(X) }", 13, {f32({3}, {-2, 0, 2})}, {f32({3}, {-2, 0, 2})});
  check_op(both, 13, {f32({3}, {-2, 0, 6}), f32({}, {2}), f32({}, {1})}, {f32({3}, {1, 1, 1})});
  check_op_fails(both, 11, {f32({1}, {1}), f32({2}, {0, 0}), f32({}, {1})}, ErrorCode::ShapeMismatch, "one number");
}

TEST_CASE("Clip in every numeric type") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int8, DType::Int16,
                           DType::Int32, DType::Int64, DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64})
    check_op("(X, low, high) => (Y) { Y = Clip(X, low, high) }", 13,
             {tensor_as(type, {3}, {1, 5, 9}), tensor_as(type, {}, {2}), tensor_as(type, {}, {6})},
             {tensor_as(type, {3}, {2, 5, 6})});
}

}  // namespace
}  // namespace infernode::test
