#include <array>

#include "ops/float_types.h"

namespace infernode::test {
namespace {

Tensor bytes(DType type, const Shape& shape, std::uint32_t seed) {
  Tensor out = Tensor::make(type, shape);
  auto* to = static_cast<std::uint8_t*>(out.mutable_raw());
  const Tensor random = noise(shape, 128, seed);
  for (std::int64_t i = 0; i < out.numel(); ++i)
    to[i] = static_cast<std::uint8_t>(static_cast<int>(random.data<float>()[i]));
  return out;
}

/// The product by its definition.
Tensor reference(const Tensor& a, const Tensor& b, std::int64_t a_zero, const std::vector<std::int64_t>& b_zeros) {
  const auto x = tensor::to_int64_vector(a), w = tensor::to_int64_vector(b);
  const auto m = static_cast<std::size_t>(a.dim(0)), k = static_cast<std::size_t>(a.dim(1)),
             n = static_cast<std::size_t>(b.dim(1));
  Tensor out = Tensor::make(DType::Int32, {a.dim(0), b.dim(1)});
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      std::int64_t sum = 0;
      for (std::size_t p = 0; p < k; ++p)
        sum += (x[i * k + p] - a_zero) * (w[p * n + j] - b_zeros[b_zeros.size() == 1 ? 0 : j]);
      out.mutable_data<std::int32_t>()[i * n + j] = static_cast<std::int32_t>(sum);
    }
  }
  return out;
}

TEST_CASE("MatMulInteger is exact for every pair of types and odd sizes") {
  for (const DType a_type : {DType::UInt8, DType::Int8}) {
    for (const DType b_type : {DType::UInt8, DType::Int8}) {
      for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 70, 33}, {7, 129, 19}, {40, 16, 64}}) {
        CAPTURE(tensor::name(a_type));
        CAPTURE(tensor::name(b_type));
        const Tensor a = bytes(a_type, {m, k}, 1), b = bytes(b_type, {k, n}, 2);
        check_op("(A, B) => (Y) { Y = MatMulInteger(A, B) }", 10, {a, b}, {reference(a, b, 0, {0})});
        check_op("(A, B, Z, V) => (Y) { Y = MatMulInteger(A, B, Z, V) }", 10,
                 {a, b, tensor_as(a_type, {}, {3}), tensor_as(b_type, {}, {5})}, {reference(a, b, 3, {5})});
      }
    }
  }
}

TEST_CASE("MatMulInteger takes zero points by row and by column, and stacks") {
  const Tensor a = u8({2, 2}, {1, 2, 3, 4}), b = u8({2, 2}, {5, 6, 7, 8});
  check_op("(A, B, Z, V) => (Y) { Y = MatMulInteger(A, B, Z, V) }", 10, {a, b, u8({2}, {1, 0}), u8({2}, {5, 0})},
           {i32({2, 2}, {2, 8, 8, 50})});
  check_op("(uint8[2,1,2] A, uint8[2,2] B, uint8[2,1,1] Z) => (int32[2,1,2] Y) { Y = MatMulInteger(A, B, Z) }", 10,
           {u8({2, 1, 2}, {1, 2, 3, 4}), b, u8({2, 1, 1}, {1, 3})}, {i32({2, 1, 2}, {7, 8, 7, 8})});
  check_op("(uint8[2] A, uint8[2,2,2] B) => (int32[2,2] Y) { Y = MatMulInteger(A, B) }", 10,
           {u8({2}, {1, 2}), u8({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}, {i32({2, 2}, {7, 10, 19, 22})});
  check_threads("(A, B) => (Y) { Y = MatMulInteger(A, B) }", 10,
                {bytes(DType::UInt8, {130, 200}, 1), bytes(DType::Int8, {200, 150}, 2)});
}

TEST_CASE("QLinearMatMul requantizes") {
  // (a - 1) * 0.5 times (b - 2) * 2, over 4, plus 10.
  check_op("(A, AS, AZ, B, BS, BZ, YS, YZ) => (Y) { Y = QLinearMatMul(A, AS, AZ, B, BS, BZ, YS, YZ) }", 10,
           {u8({1, 2}, {3, 5}), f32({}, {0.5}), u8({}, {1}), i8({2, 2}, {4, 100, 2, 127}), f32({}, {2}), i8({}, {2}),
            f32({}, {4}), u8({}, {10})},
           {u8({1, 2}, {11, 184})});
  check_op("(A, AS, AZ, B, BS, BZ, YS, YZ) => (Y) { Y = QLinearMatMul(A, AS, AZ, B, BS, BZ, YS, YZ) }", 21,
           {u8({2, 1}, {4, 4}), f32({2}, {1, 2}), u8({2}, {0, 1}), u8({1, 2}, {2, 3}), f32({2}, {1, 10}),
            u8({2}, {0, 0}), f32({}, {1}), i8({}, {0})},
           {i8({2, 2}, {8, 120, 12, 127})});
  check_op("(A, AS, AZ, B, BS, BZ, YS, YZ) => (Y) { Y = QLinearMatMul(A, AS, AZ, B, BS, BZ, YS, YZ) }", 21,
           {tensor_as(DType::Float8E4M3FN, {1, 2}, {1, 2}), f16({}, {2}), tensor_as(DType::Float8E4M3FN, {}, {0}),
            tensor_as(DType::Float8E4M3FN, {2, 1}, {3, 4}), f16({}, {1}), tensor_as(DType::Float8E4M3FN, {}, {0}),
            f16({}, {0.5}), tensor_as(DType::Float8E4M3FN, {}, {0})},
           {tensor_as(DType::Float8E4M3FN, {1, 1}, {44})});
}

TEST_CASE("Integer products that end in float32") {
  const char* header = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";
  check_op(cat(header, "(A, B, S, T, Z, V, C) => (Y) { Y = com.microsoft.MatMulIntegerToFloat(A, B, S, T, Z, V, C) }"),
           17,
           {u8({1, 2}, {3, 5}), u8({2, 2}, {1, 2, 3, 4}), f32({}, {0.5}), f32({2}, {2, 4}), u8({}, {1}),
            u8({2}, {0, 1}), f32({2}, {100, 200})},
           {f32({1, 2}, {114, 228})});
  check_op(cat(header, "(A, B, S, Z) => (Y) { Y = com.microsoft.DynamicQuantizeMatMul(A, B, S, Z) }"), 17,
           {f32({1, 3}, {0, 51, 255}), i8({3, 1}, {7, 2, 1}), f32({}, {0.5}), i8({}, {0})}, {f32({1, 1}, {178.5})});
}

TEST_CASE("infernode.FusedMatMulInteger") {
  const char* call = "(A, B, S, T, Z, V, C, R) => (Y) { Y = infernode.FusedMatMulInteger(A, B, S, T, Z, V, C, R) }";
  const Tensor a = u8({1, 2}, {3, 5}), b = u8({2, 2}, {1, 2, 3, 4});
  check_op(call, 17,
           {a, b, f32({}, {0.5}), f32({2}, {2, 4}), u8({}, {1}), u8({2}, {0, 1}), f32({2}, {100, 200}),
            f32({1, 2}, {1, -1000})},
           {f32({1, 2}, {115, -772})});
  check_op("(A, B, T, Z, V, C) => (Y) { Y = infernode.FusedMatMulInteger<activation=\"Relu\">(A, B, , T, Z, V, C) }",
           17, {a, b, f32({}, {2}), u8({}, {1}), u8({2}, {0, 1}), f32({2}, {100, -200})}, {f32({1, 2}, {128, 0})});
  check_op("(A, B, T, V) => (Y) { Y = infernode.FusedMatMulInteger(A, B, , T, , V) }", 17,
           {f32({1, 3}, {0, 51, 255}), i8({3, 1}, {7, 2, 1}), f32({}, {0.5}), i8({}, {0})}, {f32({1, 1}, {178.5})});
  // As the separate operators, to the last bit.
  const std::string parts =
      "(X, B, T, V, C) => (Y) { Q, S, Z = DynamicQuantizeLinear(X)  I = MatMulInteger(Q, B, Z, V)  "
      "F = Cast<to=1>(I)  M = Mul(S, T)  P = Mul(F, M)  Y = Add(P, C) }";
  for (const std::int64_t n : {33, 64}) {
    const std::vector<Value> inputs{noise({2, 19, 70}, 2, 1), bytes(DType::Int8, {70, n}, 2), f32({}, {0.013}),
                                    i8({}, {3}), noise({n}, 2, 3)};
    check_op("(X, B, T, V, C) => (Y) { Y = infernode.FusedMatMulInteger(X, B, , T, , V, C) }", 17, inputs,
             run_op(parts, 17, inputs), 0);
  }
  check_threads("(X, B, T, V) => (Y) { Y = infernode.FusedMatMulInteger<activation=\"Gelu\">(X, B, , T, , V) }", 17,
                {noise({130, 200}, 2, 1), bytes(DType::Int8, {200, 150}, 2), f32({}, {0.01}), i8({}, {1})});
  check_op_fails(
      call, 17,
      {a, b, f32({}, {0.5}), f32({2}, {2, 4}), u8({}, {1}), u8({2}, {0, 1}), f32({3}, {1, 2, 3}), f32({1, 2}, {1, 2})},
      ErrorCode::ShapeMismatch, "bias");
  check_op_fails(
      call, 17,
      {a, b, f32({}, {0.5}), f32({2}, {2, 4}), u8({}, {1}), u8({2}, {0, 1}), f32({2}, {1, 2}), f32({2}, {1, 2})},
      ErrorCode::ShapeMismatch, "adds");
}

TEST_CASE("MatMulInteger refuses what does not fit") {
  check_op_fails("(A, B) => (Y) { Y = MatMulInteger(A, B) }", 10,
                 {bytes(DType::UInt8, {2, 3}, 1), bytes(DType::UInt8, {2, 3}, 1)}, ErrorCode::ShapeMismatch,
                 "dimension mismatch");
  check_op_fails("(A, B, Z) => (Y) { Y = MatMulInteger(A, B, Z) }", 10,
                 {bytes(DType::UInt8, {2, 3}, 1), bytes(DType::UInt8, {3, 3}, 1), u8({3}, {1, 2, 3})},
                 ErrorCode::ShapeMismatch, "");
}

}  // namespace
}  // namespace infernode::test
