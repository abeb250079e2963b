#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("MatMul multiplies matrices, vectors and broadcast stacks") {
  const Tensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  check_op("(float[M,3] A, float[3,N] B) => (float[M,N] Y) { Y = MatMul(A, B) }", 13,
           {a, f32({3, 2}, {1, 2, 3, 4, 5, 6})}, {f32({2, 2}, {22, 28, 49, 64})});
  check_op("(float[2,3] A, float[3] B) => (float[2] Y) { Y = MatMul(A, B) }", 13, {a, f32({3}, {1, 0, -1})},
           {f32({2}, {-2, -2})});
  check_op("(float[2] A, float[2,3] B) => (float[3] Y) { Y = MatMul(A, B) }", 13, {f32({2}, {1, -1}), a},
           {f32({3}, {-3, -3, -3})});
  check_op("(float[3] A, float[3] B) => (float Y) { Y = MatMul(A, B) }", 13, {f32({3}, {1, 2, 3}), f32({3}, {4, 5, 6})},
           {f32({}, {32})});
  check_op("(float[2,1,1,2] A, float[3,2,1] B) => (float[2,3,1,1] Y) { Y = MatMul(A, B) }", 13,
           {f32({2, 1, 1, 2}, {1, 2, 3, 4}), f32({3, 2, 1}, {1, 1, 2, 2, 3, 3})},
           {f32({2, 3, 1, 1}, {3, 6, 9, 7, 14, 21})});
}

TEST_CASE("MatMul agrees in all floating types, packed or not, at odd sizes") {
  const char* text = "(A, B) => (Y) { Y = MatMul(A, B) }";
  check_float_types(text, 13, {noise({7, 33}), noise({33, 19}, 1, 2)});
  check_float_types(text, 13, {noise({1, 130}), noise({130, 65}, 1, 2)});
  check_float_types(text, 13, {noise({3, 2, 5, 17}), noise({2, 17, 9}, 1, 2)});
  check_float_types(text, 13, {noise({3, 4, 11}), noise({11, 6}, 1, 2)});
  check_float_types(text, 13, {noise({4, 11}), noise({3, 11, 6}, 1, 2)});
  check_float_types(text, 13, {noise({65, 400}), noise({400, 70}, 1, 2)}, {}, kLongSumTolerance);
}

TEST_CASE("MatMul of integers wraps") {
  check_op("(int32[1,2] A, int32[2,1] B) => (int32[1,1] Y) { Y = MatMul(A, B) }", 9,
           {i32({1, 2}, {INT32_MAX, 2}), i32({2, 1}, {2, 3})}, {i32({1, 1}, {4})});
  check_op("(int64[2,2] A, int64[2,2] B) => (int64[2,2] Y) { Y = MatMul(A, B) }", 13,
           {i64({2, 2}, {1, 2, 3, 4}), i64({2, 2}, {1, -1, 1, 1})}, {i64({2, 2}, {3, 1, 7, 1})});
}

TEST_CASE("MatMul of nothing gives zeros or nothing") {
  check_op("(float[2,0] A, float[0,3] B) => (float[2,3] Y) { Y = MatMul(A, B) }", 13,
           {f32({2, 0}, {}), f32({0, 3}, {})}, {f32({2, 3}, {0, 0, 0, 0, 0, 0})});
  check_op("(float[0,2,2] A, float[2,2] B) => (float[0,2,2] Y) { Y = MatMul(A, B) }", 13,
           {f32({0, 2, 2}, {}), f32({2, 2}, {1, 2, 3, 4})}, {f32({0, 2, 2}, {})});
}

TEST_CASE("MatMul does not depend on the number of threads") {
  check_threads("(A, B) => (Y) { Y = MatMul(A, B) }", 13, {noise({130, 300}), noise({300, 140}, 1, 2)});
  check_threads("(A, B) => (Y) { Y = MatMul(A, B) }", 13, {noise({1, 700}), noise({700, 900}, 1, 2)});
}

TEST_CASE("MatMul infers symbolic shapes") {
  CHECK(infer_op("(float[B,S,64] A, float[64,N] W) => (Y) { Y = MatMul(A, W) }", 13) == "tensor(float)[B,S,N]");
  CHECK(infer_op("(float[B,1,S,D] A, float[H,D,T] W) => (Y) { Y = MatMul(A, W) }", 13) == "tensor(float)[B,H,S,T]");
}

TEST_CASE("MatMul refuses what does not fit") {
  check_op_fails("(float[2,3] A, float[2,3] B) => (float[2,3] Y) { Y = MatMul(A, B) }", 13,
                 {noise({2, 3}), noise({2, 3})}, ErrorCode::ShapeMismatch, "dimension mismatch");
  check_op_fails("(float A, float[2,3] B) => (float[2,3] Y) { Y = MatMul(A, B) }", 13, {noise({}), noise({2, 3})},
                 ErrorCode::ShapeMismatch, "no scalars");
}

TEST_CASE("FusedMatMul transposes and scales") {
  const char* header = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";
  const Tensor a = f32({3, 2}, {1, 4, 2, 5, 3, 6}), b = f32({2, 3}, {1, 3, 5, 2, 4, 6});
  check_op(cat(header,
               "(float[3,2] A, float[2,3] B) => (float[2,2] Y) { Y = com.microsoft.FusedMatMul<alpha=0.5, "
               "transA=1, transB=1>(A, B) }"),
           17, {a, b}, {f32({2, 2}, {11, 14, 24.5, 32})});
  check_op(cat(header,
               "(float[2,2,1] A, float[2,1] B) => (float[2,1,1] Y) { Y = com.microsoft.FusedMatMul<transA=1>"
               "(A, B) }"),
           17, {f32({2, 2, 1}, {1, 2, 3, 4}), f32({2, 1}, {1, 10})}, {f32({2, 1, 1}, {21, 43})});
}

}  // namespace
}  // namespace infernode::test
