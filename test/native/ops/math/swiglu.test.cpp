#include "ops/op_test.h"

namespace infernode::test {

TEST_CASE("SwiGLU gates one tensor by the other, by its definition") {
  const Tensor a = f32({3}, {-1, 0, 2}), b = f32({3}, {4, 5, 6});
  const char* text = "(float[N] A, float[N] B) => (Y) { Y = SwiGLU(A, B) }";
  check_op(text, 28, {a, b}, {f32({3}, {-1.0757656f, 0, 10.5695648f})});
  check_op("(A, B) => (Y) { Y = SwiGLU<alpha=2.0>(A, B) }", 28, {a, b}, {f32({3}, {-0.4768117f, 0, 11.7841654f})});
  check_op("(A, B) => (Y) { Y = SwiGLU(A, B) }", 28, {f64({1}, {2}), f64({1}, {6})}, {f64({1}, {10.569564938})}, 1e-8);
  for (const DType type : {DType::Float16, DType::BFloat16}) {
    check_op("(A, B) => (Y) { Y = SwiGLU(A, B) }", 28, {tensor_as(type, {2}, {2, 0}), tensor_as(type, {2}, {4, 1})},
             {tensor_as(type, {2}, {7.046376, 0})}, 1e-2);
  }
  CHECK(infer_op(text, 28) == "tensor(float)[N]");
  check_op_fails("(A, B) => (Y) { Y = SwiGLU(A, B) }", 28, {a, f32({2}, {1, 2})}, ErrorCode::ShapeMismatch, "SwiGLU");
}

TEST_CASE("Functions are expanded within subgraphs") {
  check_op(
      "(bool c, float[3] A, float[3] B) => (Y) {"
      "  Y = If <then_branch = t () => (float[3] y) { y = SwiGLU(A, B) },"
      "          else_branch = e () => (float[3] z) { z = Add(A, B) }> (c)"
      "}",
      28, {b8({}, {true}), f32({3}, {-1, 0, 2}), f32({3}, {4, 5, 6})}, {f32({3}, {-1.0757656f, 0, 10.5695648f})});
}

}  // namespace infernode::test
