#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g ";

TEST_CASE("QLinearAdd adds the numbers that codes stand for, broadcasting") {
  const std::string add =
      cat(kHeader, "(A, s, z, B, t, C) => (Y) { Y = com.microsoft.QLinearAdd(A, s, z, B, t, , C) }");
  check_op(add, 21,
           {u8({2, 3}, {0, 10, 20, 30, 40, 255}), f32({}, {0.5f}), u8({}, {10}), u8({3}, {0, 1, 200}), f32({}, {1}),
            f32({}, {2})},
           {u8({2, 3}, {0, 0, 102, 5, 8, 161})});
  check_op(cat(kHeader, "(A, s, z, B, C) => (Y) { Y = com.microsoft.QLinearMul(A, s, z, B, s, z, C, z) }"), 21,
           {i8({2}, {-128, 127}), f32({}, {1}), i8({}, {1}), i8({1}, {3}), f32({}, {4})}, {i8({2}, {-64 + 1, 64})});
}

TEST_CASE("QLinearAdd refuses vectors of scales and shapes that do not fit") {
  const std::string add =
      cat(kHeader, "(A, s, z, B, t, y, C, w) => (Y) { Y = com.microsoft.QLinearAdd(A, s, z, B, t, y, C, w) }");
  const Tensor z = u8({}, {0}), s = f32({}, {1});
  check_op_fails(add, 21, {u8({2}, {1, 2}), f32({2}, {1, 2}), z, u8({2}, {1, 2}), s, z, s, z}, ErrorCode::ShapeMismatch,
                 "takes one of each");
  check_op_fails(add, 21, {u8({2}, {1, 2}), s, z, u8({3}, {1, 2, 3}), s, z, s, z}, ErrorCode::ShapeMismatch, "");
}

}  // namespace
}  // namespace infernode::test
