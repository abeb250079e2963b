#include "ops/op_test.h"

namespace infernode::test {
namespace {

const char* kUntyped[] = {"(A, B) => (C) { C = Add(A, B) }", "(A, B) => (C) { C = Sub(A, B) }",
                          "(A, B) => (C) { C = Mul(A, B) }", "(A, B) => (C) { C = Div(A, B) }"};

TEST_CASE("Arithmetic works in every type that the standard lists") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int8, DType::Int16,
                           DType::Int32, DType::Int64, DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64}) {
    CAPTURE(tensor::name(type));
    const Tensor a = tensor_as(type, {2, 3}, {12, 6, 8, 20, 9, 100}), b = tensor_as(type, {3}, {3, 6, 4});
    check_op(kUntyped[0], 14, {a, b}, {tensor_as(type, {2, 3}, {15, 12, 12, 23, 15, 104})});
    check_op(kUntyped[1], 14, {a, b}, {tensor_as(type, {2, 3}, {9, 0, 4, 17, 3, 96})});
    check_op(kUntyped[2], 14, {tensor_as(type, {2, 3}, {1, 2, 3, 4, 5, 6}), b},
             {tensor_as(type, {2, 3}, {3, 12, 12, 12, 30, 24})});
    check_op(kUntyped[3], 14, {tensor_as(type, {2, 3}, {12, 6, 8, 21, 12, 100}), b},
             {tensor_as(type, {2, 3}, {4, 1, 2, 7, 2, 25})});
  }
}

TEST_CASE("Arithmetic broadcasts both ways") {
  const char* add = "(float[2,1,3] A, float[4,1] B) => (C) { C = Add(A, B) }";
  std::vector<float> expected;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 3; ++k) expected.push_back(static_cast<float>(i * 3 + k + 100 * j));
  check_op(add, 7, {iota(DType::Float32, {2, 1, 3}), iota(DType::Float32, {4, 1}, 0, 100)},
           {Tensor::of<float>({2, 4, 3}, std::span<const float>(expected))});
  CHECK(infer_op("(float[N,1,3] A, float[M,1] B) => (C) { C = Add(A, B) }", 7) == "tensor(float)[N,M,3]");
  check_op(kUntyped[0], 7, {f32({}, {2}), f32({1, 1}, {3})}, {f32({1, 1}, {5})});
  check_op(kUntyped[0], 7, {f32({0, 3}, {}), f32({3}, {1, 2, 3})}, {f32({0, 3}, {})});
  check_op_fails(kUntyped[0], 7, {f32({2}, {1, 2}), f32({3}, {1, 2, 3})}, ErrorCode::ShapeMismatch, "broadcast");
}

TEST_CASE("Arithmetic of no elements gives none, whatever is broadcast") {
  const auto shape = [](int code) { return Shape{code % 3, code / 3 % 3, code / 9 % 3}; };  // dims 0, 1 and 2
  for (int a = 0; a < 27; ++a) {
    for (int b = 0; b < 27; ++b) {
      Shape out;
      bool fits = true;
      for (std::size_t d = 0; d < 3; ++d) {
        const std::int64_t x = shape(a)[d], y = shape(b)[d];
        fits = fits && (x == y || x == 1 || y == 1);
        out.push_back(x == 1 ? y : x);
      }
      if (!fits || out.numel() != 0) continue;
      CAPTURE(a);
      CAPTURE(b);
      check_op(kUntyped[0], 14, {noise(shape(a), 1), noise(shape(b), 2)}, {Tensor::make(DType::Float32, out)});
    }
  }
  for (const std::int64_t length : {4, 16, 64, 768}) {
    check_op(kUntyped[2], 14, {noise({0, length}, 1), noise({length}, 2)}, {Tensor::make(DType::Float32, {0, length})});
  }
}

TEST_CASE("A short row is repeated along the axis outside of it, on either side") {
  for (const std::int64_t length : {3, 16, 64, 65}) {
    for (const std::int64_t times : {2, 49, 1500}) {
      const Tensor a = noise({2, 3, times, length}), row = noise({2, 3, 1, length}, 1, 2);
      Tensor one = Tensor::make(DType::Float32, a.shape()), other = Tensor::make(DType::Float32, a.shape());
      for (std::int64_t i = 0; i < a.numel(); ++i) {
        const std::int64_t at = i / (times * length) * length + i % length;
        one.mutable_data<float>()[i] = a.data<float>()[i] - row.data<float>()[at];
        other.mutable_data<float>()[i] = row.data<float>()[at] - a.data<float>()[i];
      }
      check_op("(A, B) => (C) { C = Sub(A, B) }", 14, {a, row}, {one}, 0);
      check_op("(A, B) => (C) { C = Sub(B, A) }", 14, {a, row}, {other}, 0);
    }
  }
}

TEST_CASE("Large tensors are split over threads and give the same") {
  const Tensor a = noise({301, 997}), row = noise({997}, 1, 2), column = noise({301, 1}, 1, 3);
  const auto value = [](const Tensor& t, std::int64_t i) { return t.data<float>()[i]; };
  Tensor sum = Tensor::make(DType::Float32, a.shape()), product = Tensor::make(DType::Float32, a.shape());
  for (std::int64_t i = 0; i < 301; ++i)
    for (std::int64_t j = 0; j < 997; ++j) {
      sum.mutable_data<float>()[i * 997 + j] = value(a, i * 997 + j) + value(row, j);
      product.mutable_data<float>()[i * 997 + j] = value(column, i) * value(a, i * 997 + j);
    }
  check_op(kUntyped[0], 14, {a, row}, {sum});
  check_op(kUntyped[2], 14, {column, a}, {product});
}

TEST_CASE("Integer division truncates and never traps") {
  check_op(kUntyped[3], 14, {i32({5}, {7, -7, 7, INT32_MIN, 5}), i32({5}, {2, 2, -2, -1, 0})},
           {i32({5}, {3, -3, -3, INT32_MIN, 0})});
  check_op(kUntyped[3], 14, {i64({3}, {INT64_MIN, 1, -9}), i64({3}, {-1, 0, 4})}, {i64({3}, {INT64_MIN, 0, -2})});
  check_op(kUntyped[3], 14, {i8({2}, {-128, -128}), i8({2}, {-1, 0})}, {i8({2}, {-128, 0})});
  check_op(kUntyped[3], 14, {f32({3}, {1, -1, 0}), f32({3}, {0, 0, 0})}, {f32({3}, {kInf, -kInf, kNaN})});
}

TEST_CASE("Integer sums and products wrap") {
  check_op(kUntyped[0], 14, {u8({2}, {250, 1}), u8({2}, {10, 2})}, {u8({2}, {4, 3})});
  check_op(kUntyped[2], 14, {i64({1}, {INT64_MAX}), i64({1}, {2})}, {i64({1}, {-2})});
  check_op(kUntyped[1], 14, {i32({1}, {INT32_MIN}), i32({1}, {1})}, {i32({1}, {INT32_MAX})});
}

TEST_CASE("Before version 7 B takes its place by attributes") {
  const Tensor a = iota(DType::Float32, {2, 3, 2});
  check_op("(A, B) => (C) { C = Add<broadcast=1, axis=1>(A, B) }", 6, {a, f32({3}, {10, 20, 30})},
           {f32({2, 3, 2}, {10, 11, 22, 23, 34, 35, 16, 17, 28, 29, 40, 41})});
  check_op("(A, B) => (C) { C = Add<broadcast=1>(A, B) }", 6, {a, f32({2}, {10, 20})},
           {f32({2, 3, 2}, {10, 21, 12, 23, 14, 25, 16, 27, 18, 29, 20, 31})});
  check_op("(A, B) => (C) { C = Mul<broadcast=1, consumed_inputs=[0, 0]>(A, B) }", 1, {f32({2}, {1, 2}), f32({1}, {3})},
           {f32({2}, {3, 6})});
  check_op("(A, B) => (C) { C = Sub<broadcast=1, axis=0>(A, B) }", 6, {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {1, 2})},
           {f32({2, 2}, {0, 1, 1, 2})});
  check_op_fails("(A, B) => (C) { C = Add(A, B) }", 6, {a, f32({2}, {1, 2})}, ErrorCode::ShapeMismatch, "does not fit");
  check_op_fails("(A, B) => (C) { C = Add<broadcast=1, axis=1>(A, B) }", 6, {a, f32({2}, {1, 2})},
                 ErrorCode::ShapeMismatch, "does not fit");
}

TEST_CASE("Versions keep to their types") {
  check_op_fails("(A, B) => (C) { C = Add(A, B) }", 13, {i8({1}, {1}), i8({1}, {1})}, ErrorCode::InvalidModel, "int8");
  check_op_fails("(A, B) => (C) { C = Add(A, B) }", 14, {f32({1}, {1}), f64({1}, {1})}, ErrorCode::InvalidModel,
                 "same type");
}

TEST_CASE("Shape arithmetic is followed symbolically") {
  const char* chain =
      "(float[N,M] X, int64[1] k) => (C) { S = Shape(X) D = Mul(S, k) E = Add(D, k) F = Div(E, k) C = Sub(F, k) }";
  CHECK(infer_contents(chain, 14, {Value{}, i64({1}, {2})}) == "[N - 1,M - 1]");
}

}  // namespace
}  // namespace infernode::test
