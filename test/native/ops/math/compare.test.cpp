#include "ops/op_test.h"

namespace infernode::test {
namespace {

std::string relation(const char* op) { return cat("(A, B) => (C) { C = ", op, "(A, B) }"); }

TEST_CASE("Comparisons work in every numeric type") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int8, DType::Int16,
                           DType::Int32, DType::Int64, DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64}) {
    CAPTURE(tensor::name(type));
    const Tensor a = tensor_as(type, {3}, {1, 2, 3}), b = tensor_as(type, {1}, {2});
    check_op(relation("Equal"), 19, {a, b}, {b8({3}, {false, true, false})});
    check_op(relation("Less"), 13, {a, b}, {b8({3}, {true, false, false})});
    check_op(relation("LessOrEqual"), 16, {a, b}, {b8({3}, {true, true, false})});
    check_op(relation("Greater"), 13, {a, b}, {b8({3}, {false, false, true})});
    check_op(relation("GreaterOrEqual"), 16, {a, b}, {b8({3}, {false, true, true})});
  }
}

TEST_CASE("Comparisons of floats over short rows that one side repeats") {
  for (const DType type : {DType::Float32, DType::Float16, DType::BFloat16}) {
    for (const std::int64_t n : {1, 3, 12, 49, 100}) {
      CAPTURE(n);
      std::vector<double> all, row;
      for (std::int64_t i = 0; i < 40 * n; ++i) all.push_back(static_cast<double>(i * i % 5));
      for (std::int64_t i = 0; i < n; ++i) row.push_back(static_cast<double>(i % 4));
      std::vector<double> less, not_less;
      for (std::size_t i = 0; i < all.size(); ++i) {
        less.push_back(all[i] < row[i % row.size()] ? 1 : 0);
        not_less.push_back(1 - less.back());
      }
      const Tensor a = tensor_as(type, {40, n}, all), b = tensor_as(type, {n}, row);
      check_op(relation("Less"), 13, {a, b}, {tensor_as(DType::Bool, {40, n}, less)});
      check_op(relation("Greater"), 13, {b, a}, {tensor_as(DType::Bool, {40, n}, less)});
      check_op(relation("GreaterOrEqual"), 16, {a, b}, {tensor_as(DType::Bool, {40, n}, not_less)});
      check_op(relation("LessOrEqual"), 16, {b, a}, {tensor_as(DType::Bool, {40, n}, not_less)});
    }
  }
}

TEST_CASE("NaN is neither equal, less nor greater") {
  for (const char* op : {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"})
    check_op(relation(op), 16, {f32({2}, {kNaN, 1}), f32({2}, {kNaN, kNaN})}, {b8({2}, {false, false})});
}

TEST_CASE("Equal compares bools and strings") {
  check_op(relation("Equal"), 1, {b8({2}, {true, false}), b8({2}, {true, true})}, {b8({2}, {true, false})});
  check_op(relation("Equal"), 19, {str({2, 1}, {"a", "b"}), str({2}, {"b", "a"})},
           {b8({2, 2}, {false, true, true, false})});
  check_op_fails(relation("Equal"), 13, {str({1}, {"a"}), str({1}, {"b"})}, ErrorCode::InvalidModel, "string");
}

TEST_CASE("Old comparisons place B by axis") {
  check_op("(A, B) => (C) { C = Less<broadcast=1, axis=0>(A, B) }", 1, {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {2, 4})},
           {b8({2, 2}, {true, false, true, false})});
}

TEST_CASE("Equal of symbolic sizes is known where it must be") {
  const char* text = "(float[N,3] X, int64[1] k) => (C) { S = Shape(X) C = Equal(S, k) }";
  CHECK(infer_contents(text, 19, {Value{}, i64({1}, {-1})}) == "[0,0]");
  CHECK(infer_contents("(float[N,3] X) => (C) { S = Shape(X) C = Equal(S, S) }", 19) == "[1,1]");
  CHECK(infer_op("(float[N,1] A, float[M] B) => (C) { C = Less(A, B) }", 13) == "tensor(bool)[N,M]");
}

}  // namespace
}  // namespace infernode::test
