#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("CumSum in all four directions") {
  const Tensor x = f32({3}, {1, 2, 3}), axis = i64({}, {0});
  check_op("(X, A) => (Y) { Y = CumSum(X, A) }", 11, {x, axis}, {f32({3}, {1, 3, 6})});
  check_op("(X, A) => (Y) { Y = CumSum<exclusive=1>(X, A) }", 11, {x, axis}, {f32({3}, {0, 1, 3})});
  check_op("(X, A) => (Y) { Y = CumSum<reverse=1>(X, A) }", 14, {x, axis}, {f32({3}, {6, 5, 3})});
  check_op("(X, A) => (Y) { Y = CumSum<reverse=1, exclusive=1>(X, A) }", 14, {x, axis}, {f32({3}, {5, 3, 0})});
}

TEST_CASE("CumSum and CumProd along any axis of any type") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int32, DType::Int64,
                           DType::UInt32, DType::UInt64}) {
    const Tensor x = tensor_as(type, {2, 3}, {1, 2, 3, 4, 5, 6});
    check_op("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {x, i32({}, {0})},
             {tensor_as(type, {2, 3}, {1, 2, 3, 5, 7, 9})});
    check_op("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {x, i32({1}, {-1})},
             {tensor_as(type, {2, 3}, {1, 3, 6, 4, 9, 15})});
    check_op("(X, A) => (Y) { Y = CumProd(X, A) }", 26, {x, i64({}, {1})},
             {tensor_as(type, {2, 3}, {1, 2, 6, 4, 20, 120})});
    check_op("(X, A) => (Y) { Y = CumProd<reverse=1, exclusive=1>(X, A) }", 26, {x, i64({}, {1})},
             {tensor_as(type, {2, 3}, {6, 3, 1, 30, 6, 1})});
  }
}

TEST_CASE("Running sums over many, few and odd numbers of columns") {
  for (const DType type : {DType::Float32, DType::Float64, DType::Float16, DType::Int64}) {
    for (const std::int64_t inner : {1, 2, 7, 15, 16, 17, 100, 1025, 2500}) {
      for (const bool exclusive : {false, true}) {
        for (const bool reverse : {false, true}) {
          const std::int64_t outer = inner < 16 ? 77 : 3, count = 5;
          const auto at = [&](std::int64_t o, std::int64_t c, std::int64_t i) {
            return static_cast<std::size_t>((o * count + (reverse ? count - 1 - c : c)) * inner + i);
          };
          std::vector<double> x, y(static_cast<std::size_t>(outer * count * inner));
          for (std::size_t i = 0; i < y.size(); ++i) x.push_back(static_cast<double>(i * 13 % 17) - 8);
          for (std::int64_t o = 0; o < outer; ++o) {
            for (std::int64_t i = 0; i < inner; ++i) {
              double total = 0;
              for (std::int64_t c = 0; c < count; ++c) {
                const double before = total;
                total += x[at(o, c, i)];
                y[at(o, c, i)] = exclusive ? before : total;
              }
            }
          }
          const Shape shape{outer, count, inner};
          check_op(cat("(X, A) => (Y) { Y = CumSum<exclusive=", exclusive ? 1 : 0, ", reverse=", reverse ? 1 : 0,
                       ">(X, A) }"),
                   14, {tensor_as(type, shape, x), i64({}, {1})}, {tensor_as(type, shape, y)});
        }
      }
    }
  }
}

TEST_CASE("CumSum of nothing, and along no axis") {
  check_op("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {f32({0, 2}, {}), i64({}, {0})}, {f32({0, 2}, {})});
  check_op_fails("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {f32({2}, {1, 2}), i64({}, {1})}, ErrorCode::InvalidArgument,
                 "axis");
  check_op_fails("(X, A) => (Y) { Y = CumSum(X, A) }", 14, {f32({}, {1}), i64({}, {0})}, ErrorCode::ShapeMismatch,
                 "scalar");
}

}  // namespace
}  // namespace infernode::test
