#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g ";

TEST_CASE("QGemm gives floats or codes") {
  const std::vector<Value> inputs{u8({2, 2}, {1, 2, 3, 4}),
                                  f32({}, {0.5f}),
                                  u8({}, {1}),
                                  i8({2, 1}, {2, -3}),
                                  f32({}, {2}),
                                  i8({}, {1}),
                                  i32({1}, {10})};
  check_op(cat(kHeader, "(A, s, z, B, t, w, C) => (Y) { Y = com.microsoft.QGemm<alpha=2.0>(A, s, z, B, t, w, C) }"), 21,
           inputs, {f32({2, 1}, {12, 0})});
}

TEST_CASE("QGemm refuses operands and scales that do not fit") {
  const std::string call = cat(kHeader, "(A, s, z, B, t, w) => (Y) { Y = com.microsoft.QGemm(A, s, z, B, t, w) }");
  const Tensor one = f32({}, {1}), z = u8({}, {0});
  check_op_fails(call, 21, {u8({1, 3}, {1, 2, 3}), one, z, u8({2, 1}, {2, 3}), one, z}, ErrorCode::ShapeMismatch,
                 "fit");
  check_op_fails(call, 21, {u8({1, 2}, {1, 2}), one, z, u8({2, 1}, {2, 3}), f32({2}, {1, 2}), z},
                 ErrorCode::ShapeMismatch, "b_scale");
  check_op_fails(cat(kHeader, "(A, s, z, B) => (Y) { Y = com.microsoft.QGemm(A, s, z, B, s, z, , s) }"), 21,
                 {u8({1, 2}, {1, 2}), one, z, u8({2, 1}, {2, 3})}, ErrorCode::InvalidModel, "together");
}

}  // namespace
}  // namespace infernode::test
