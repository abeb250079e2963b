#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("Gemm adds C in every shape that broadcasts") {
  const Tensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), b = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  const struct {
    Tensor c, y;
  } cases[] = {
      {f32({2}, {10, 20}), f32({2, 2}, {32, 48, 59, 84})},
      {f32({1, 2}, {10, 20}), f32({2, 2}, {32, 48, 59, 84})},
      {f32({2, 1}, {10, 20}), f32({2, 2}, {32, 38, 69, 84})},
      {f32({2, 2}, {1, 2, 3, 4}), f32({2, 2}, {23, 30, 52, 68})},
      {f32({}, {1}), f32({2, 2}, {23, 29, 50, 65})},
      {f32({1}, {1}), f32({2, 2}, {23, 29, 50, 65})},
  };
  for (const auto& c : cases) {
    CAPTURE(c.c.to_string());
    check_op("(A, B, C) => (Y) { Y = Gemm(A, B, C) }", 13, {a, b, c.c}, {c.y});
  }
  check_op("(float[2,3] A, float[3,2] B) => (float[2,2] Y) { Y = Gemm(A, B) }", 11, {a, b},
           {f32({2, 2}, {22, 28, 49, 64})});
  check_op("(float[2,3] A, float[3,2] B, float[2] C) => (float[2,2] Y) { Y = Gemm<broadcast=1>(A, B, C) }", 6,
           {a, b, f32({2}, {10, 20})}, {f32({2, 2}, {32, 48, 59, 84})});
}

TEST_CASE("Gemm transposes and scales, in all floating types") {
  for (const int trans : {0, 1, 2, 3}) {
    const Tensor a = noise(trans & 1 ? Shape{21, 9} : Shape{9, 21}),
                 b = noise(trans & 2 ? Shape{34, 21} : Shape{21, 34}, 1, 2);
    const std::string text = cat("(A, B, C) => (Y) { Y = Gemm<alpha=0.5, beta=1.5, transA=", trans & 1,
                                 ", transB=", trans >> 1, ">(A, B, C) }");
    for (const Shape& shape : {Shape{34}, Shape{9, 1}, Shape{9, 34}, Shape{}}) {
      CAPTURE(text);
      CAPTURE(shape.to_string());
      check_float_types(text, 13, {a, b, noise(shape, 1, 3)});
    }
  }
}

TEST_CASE("Gemm of integers is exact") {
  check_op("(int64[1,2] A, int64[2,1] B, int64[1] C) => (int64[1,1] Y) { Y = Gemm(A, B, C) }", 9,
           {i64({1, 2}, {INT64_C(1) << 60, 1}), i64({2, 1}, {2, 3}), i64({1}, {5})},
           {i64({1, 1}, {(INT64_C(1) << 61) + 8})});
  check_op("(int32[1,2] A, int32[2,1] B, int32[1] C) => (int32[1,1] Y) { Y = Gemm<alpha=2.0, beta=3.0>(A, B, C) }", 11,
           {i32({1, 2}, {1, 2}), i32({2, 1}, {3, 4}), i32({1}, {5})}, {i32({1, 1}, {37})});
}

TEST_CASE("Gemm of an empty sum is beta C") {
  check_op("(float[2,0] A, float[0,2] B, float[2] C) => (float[2,2] Y) { Y = Gemm<beta=2.0>(A, B, C) }", 13,
           {f32({2, 0}, {}), f32({0, 2}, {}), f32({2}, {1, 2})}, {f32({2, 2}, {2, 4, 2, 4})});
}

TEST_CASE("Gemm does not depend on the number of threads") {
  check_threads("(A, B, C) => (Y) { Y = Gemm(A, B, C) }", 13, {noise({3, 500}), noise({500, 600}, 1, 2), noise({600})});
}

TEST_CASE("Gemm refuses what does not fit") {
  check_op_fails("(A, B) => (Y) { Y = Gemm(A, B) }", 13, {noise({2, 3}), noise({2, 3})}, ErrorCode::ShapeMismatch,
                 "dimension mismatch");
  check_op_fails("(A, B) => (Y) { Y = Gemm(A, B) }", 13, {noise({2, 3, 1}), noise({2, 3})}, ErrorCode::ShapeMismatch,
                 "takes matrices");
}

TEST_CASE("FusedGemm applies its activation") {
  const char* header = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";
  const Tensor a = f32({1, 2}, {1, 2}), b = f32({2, 2}, {1, -1, 1, -1});
  check_op(cat(header,
               "(float[1,2] A, float[2,2] B) => (float[1,2] Y) { Y = com.microsoft.FusedGemm<activation="
               "\"LeakyRelu\", activation_alpha=0.5>(A, B) }"),
           17, {a, b}, {f32({1, 2}, {3, -1.5})});
}

}  // namespace
}  // namespace infernode::test
