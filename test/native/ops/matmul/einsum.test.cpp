#include "ops/op_test.h"

namespace infernode::test {
namespace {

std::string einsum(const char* equation, int inputs) {
  return inputs == 1 ? cat("(A) => (Y) { Y = Einsum<equation=\"", equation, "\">(A) }")
                     : cat("(A, B) => (Y) { Y = Einsum<equation=\"", equation, "\">(A, B) }");
}

TEST_CASE("Einsum of one operand transposes, sums and takes diagonals") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  check_op(einsum("ij->ji", 1), 12, {x}, {f32({3, 2}, {1, 4, 2, 5, 3, 6})});
  check_op(einsum("ij->i", 1), 12, {x}, {f32({2}, {6, 15})});
  check_op(einsum("ij->j", 1), 12, {x}, {f32({3}, {5, 7, 9})});
  check_op(einsum("ij->", 1), 12, {x}, {f32({}, {21})});
  check_op(einsum("ba", 1), 12, {x}, {f32({3, 2}, {1, 4, 2, 5, 3, 6})});
  check_op(einsum("ii->i", 1), 12, {f32({2, 2}, {1, 2, 3, 4})}, {f32({2}, {1, 4})});
  check_op(einsum("ii", 1), 12, {f32({2, 2}, {1, 2, 3, 4})}, {f32({}, {5})});
  check_op(einsum("...ii ->...i", 1), 12, {f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, {f32({2, 2}, {1, 4, 5, 8})});
}

TEST_CASE("Einsum multiplies, in every type") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::Int8, DType::Int16, DType::Int32,
                           DType::Int64, DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64}) {
    const Tensor a = tensor_as(type, {2, 3}, {1, 2, 3, 4, 5, 6}), b = tensor_as(type, {3, 2}, {1, 2, 3, 4, 5, 6});
    check_op(einsum("ij,jk->ik", 2), 12, {a, b}, {tensor_as(type, {2, 2}, {22, 28, 49, 64})});
    check_op(einsum("ij,jk->ki", 2), 12, {a, b}, {tensor_as(type, {2, 2}, {22, 49, 28, 64})});
    check_op(einsum("ij,jk", 2), 12, {a, b}, {tensor_as(type, {2, 2}, {22, 28, 49, 64})});
  }
  check_op(einsum("ij,jk->ik", 2), 28, {bf16({1, 2}, {1, 2}), bf16({2, 1}, {3, 4})}, {bf16({1, 1}, {11})});
}

TEST_CASE("Einsum knows inner, outer, batched and elementwise products") {
  const Tensor x = f32({3}, {1, 2, 3}), y = f32({3}, {4, 5, 6});
  check_op(einsum("i,i", 2), 12, {x, y}, {f32({}, {32})});
  check_op(einsum("i,j->ij", 2), 12, {x, f32({2}, {1, 10})}, {f32({3, 2}, {1, 10, 2, 20, 3, 30})});
  check_op(einsum("i,i->i", 2), 12, {x, y}, {f32({3}, {4, 10, 18})});
  check_op(einsum("bij,bjk->bik", 2), 12, {f32({2, 1, 2}, {1, 2, 3, 4}), f32({2, 2, 1}, {1, 2, 3, 4})},
           {f32({2, 1, 1}, {5, 25})});
  check_op(einsum("...ij,...jk->...ik", 2), 12, {f32({2, 1, 2}, {1, 2, 3, 4}), f32({2, 1}, {1, 2})},
           {f32({2, 1, 1}, {5, 11})});
  check_op(einsum(",ij->ij", 2), 12, {f32({}, {2}), f32({1, 2}, {3, 4})}, {f32({1, 2}, {6, 8})});
  check_op(einsum("ij,kl->i", 2), 12, {f32({2, 2}, {1, 2, 3, 4}), f32({1, 2}, {5, 6})}, {f32({2}, {33, 77})});
  check_op("(A, B, C) => (Y) { Y = Einsum<equation=\"i,i,i->\">(A, B, C) }", 12,
           {f32({3}, {1, 2, 3}), f32({3}, {4, 5, 6}), f32({3}, {1, -1, 2})}, {f32({}, {30})});
  check_op("(A, B, C) => (Y) { Y = Einsum<equation=\"ij,jk,kl->il\">(A, B, C) }", 12,
           {f32({1, 2}, {1, 2}), f32({2, 2}, {1, 2, 3, 4}), f32({2, 1}, {1, 1})}, {f32({1, 1}, {17})});
  check_op(einsum("ij,jk->ik", 2), 12, {f32({2, 0}, {}), f32({0, 2}, {})}, {f32({2, 2}, {0, 0, 0, 0})});
}

TEST_CASE("Einsum infers symbolic shapes") {
  CHECK(infer_op("(float[B,N,D] Q, float[B,M,D] K) => (Y) { Y = Einsum<equation=\"bnd,bmd->bnm\">(Q, K) }", 12) ==
        "tensor(float)[B,N,M]");
  CHECK(infer_op("(float[B,N,D] Q, float[D,M] K) => (Y) { Y = Einsum<equation=\"...d,dm\">(Q, K) }", 12) ==
        "tensor(float)[B,N,M]");
}

TEST_CASE("Einsum refuses what is no equation") {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  check_op_fails(einsum("i1->i", 1), 12, {x}, ErrorCode::InvalidModel, "unexpected '1'");
  check_op_fails(einsum("ij,jk->ik", 1), 12, {x}, ErrorCode::InvalidModel, "2 terms for 1 inputs");
  check_op_fails(einsum("ijk->i", 1), 12, {x}, ErrorCode::ShapeMismatch, "rank 2");
  check_op_fails(einsum("ij->k", 1), 12, {x}, ErrorCode::InvalidModel, "no input has");
  check_op_fails(einsum("ij->ii", 1), 12, {x}, ErrorCode::InvalidModel, "repeats");
  check_op_fails(einsum("ij,jk->ik", 2), 12, {x, f32({3, 1}, {1, 2, 3})}, ErrorCode::ShapeMismatch, "label");
}

}  // namespace
}  // namespace infernode::test
