#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g ";

TEST_CASE("QLinearSigmoid and QLinearLeakyRelu take absent zero points as 0") {
  check_op(cat(kHeader, "(X, s, t) => (Y) { Y = com.microsoft.QLinearSigmoid(X, s, , t) }"), 21,
           {i8({3}, {-128, 0, 127}), f32({}, {1}), f32({}, {0.01f})}, {i8({3}, {0, 50, 100})});
  check_op(cat(kHeader, "(X, s, t) => (Y) { Y = com.microsoft.QLinearLeakyRelu<alpha=0.5>(X, s, , t) }"), 21,
           {i8({3}, {-100, 0, 7}), f32({}, {1}), f32({}, {1})}, {i8({3}, {-50, 0, 7})});
}

TEST_CASE("QLinearConcat and QLinearWhere bring their inputs to one scale") {
  check_op(
      cat(kHeader, "(s, z, A, a, B, b) => (Y) { Y = com.microsoft.QLinearConcat<axis=-1>(s, z, A, a, z, B, b, z) }"),
      21, {f32({}, {2}), u8({}, {10}), u8({1, 2}, {10, 30}), f32({}, {1}), u8({1, 1}, {12}), f32({}, {2})},
      {u8({1, 3}, {10, 20, 12})});
  check_op(cat(kHeader, "(C, X, s, z, Y, t) => (Z) { Z = com.microsoft.QLinearWhere(C, X, s, z, Y, t, z, s, z) }"), 21,
           {b8({2}, {true, false}), u8({2}, {7, 8}), f32({}, {1}), u8({}, {0}), u8({}, {9}), f32({}, {4})},
           {u8({2}, {7, 36})});
}

TEST_CASE("QLinearConcat refuses inputs that are no triples, or do not fit") {
  check_op_fails(cat(kHeader, "(s, z, A, a) => (Y) { Y = com.microsoft.QLinearConcat<axis=0>(s, z, A, a) }"), 21,
                 {f32({}, {2}), u8({}, {10}), u8({2}, {1, 2}), f32({}, {1})}, ErrorCode::InvalidModel, "triples");
  check_op_fails(
      cat(kHeader, "(s, z, A, B) => (Y) { Y = com.microsoft.QLinearConcat<axis=0>(s, z, A, s, z, B, s, z) }"), 21,
      {f32({}, {2}), u8({}, {10}), u8({1, 2}, {1, 2}), u8({1, 3}, {1, 2, 3})}, ErrorCode::ShapeMismatch, "");
}

}  // namespace
}  // namespace infernode::test
