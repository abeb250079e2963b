#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Min, Max, Sum and Mean take any number of inputs") {
  const Tensor a = f32({3}, {3, 2, 1}), b = f32({3}, {1, 4, 4}), c = f32({3}, {2, 5, 0});
  check_op("(A, B, C) => (Y) { Y = Min(A, B, C) }", 8, {a, b, c}, {f32({3}, {1, 2, 0})});
  check_op("(A, B, C) => (Y) { Y = Max(A, B, C) }", 8, {a, b, c}, {f32({3}, {3, 5, 4})});
  check_op("(A, B, C) => (Y) { Y = Sum(A, B, C) }", 8, {a, b, c}, {f32({3}, {6, 11, 5})});
  check_op("(A, B, C) => (Y) { Y = Mean(A, B, C) }", 8, {a, b, c}, {f32({3}, {2, 11.0f / 3, 5.0f / 3})});
  for (const char* op : {"Min", "Max", "Sum", "Mean"}) check_op(cat("(A) => (Y) { Y = ", op, "(A) }"), 13, {a}, {a});
}

TEST_CASE("They broadcast all inputs together") {
  check_op("(A, B, C) => (Y) { Y = Sum(A, B, C) }", 8, {f32({2, 1}, {1, 2}), f32({3}, {10, 20, 30}), f32({}, {100})},
           {f32({2, 3}, {111, 121, 131, 112, 122, 132})});
  check_op("(A, B, C) => (Y) { Y = Max(A, B, C) }", 8, {f32({}, {2}), f32({2}, {1, 3}), f32({2, 1}, {0, 9})},
           {f32({2, 2}, {2, 3, 9, 9})});
  CHECK(infer_op("(float[N,1] A, float[M] B, float[1] C) => (Y) { Y = Sum(A, B, C) }", 8) == "tensor(float)[N,M]");
}

TEST_CASE("Min and Max work in every numeric type and let NaN win") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int8, DType::Int16,
                           DType::Int32, DType::Int64, DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64}) {
    const Tensor a = tensor_as(type, {2}, {1, 7}), b = tensor_as(type, {2}, {5, 2});
    check_op("(A, B) => (Y) { Y = Min(A, B) }", 13, {a, b}, {tensor_as(type, {2}, {1, 2})});
    check_op("(A, B) => (Y) { Y = Max(A, B) }", 13, {a, b}, {tensor_as(type, {2}, {5, 7})});
  }
  check_op("(A, B) => (Y) { Y = Min(A, B) }", 13, {f32({2}, {kNaN, 1}), f32({2}, {1, kNaN})}, {f32({2}, {kNaN, kNaN})});
  check_op("(A, B) => (Y) { Y = Max(A, B) }", 13, {f64({2}, {kNaN, 1}), f64({2}, {1, kNaN})}, {f64({2}, {kNaN, kNaN})});
  check_op("(A, B) => (Y) { Y = Mean(A, B) }", 13, {f16({2}, {1, 2}), f16({2}, {3, 3})}, {f16({2}, {2, 2.5})});
}

TEST_CASE("Extremes of symbolic sizes") {
  CHECK(infer_contents("(float[N] X, int64[1] one) => (Y) { S = Shape(X) Y = Max(S, one) }", 13,
                       {Value{}, i64({1}, {1})}) == "[max(1, N)]");
}

}  // namespace
}  // namespace infernode::test
