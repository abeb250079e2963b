#include "ops/op_test.h"

#include <algorithm>
#include <numeric>

namespace infernode::test {
namespace {

TEST_CASE("TopK orders by value, equal ones by index") {
  const Tensor x = f32({2, 4}, {3, 1, 3, 2, 0, 5, 5, 5});
  check_op("(float[A,B] X) => (float[C,D] V, int64[E,F] I) { V, I = TopK<k=2>(X) }", 1, {x},
           {f32({2, 2}, {3, 3, 5, 5}), i64({2, 2}, {0, 2, 1, 2})});
  check_op("(float[A,B] X, int64[1] k) => (float[C,D] V, int64[E,F] I) { V, I = TopK(X, k) }", 10, {x, i64({1}, {3})},
           {f32({2, 3}, {3, 3, 2, 5, 5, 5}), i64({2, 3}, {0, 2, 3, 1, 2, 3})});
  check_op("(float[A,B] X, int64[1] k) => (float[C,D] V, int64[E,F] I) { V, I = TopK<largest=0, axis=0>(X, k) }", 11,
           {x, i64({1}, {1})}, {f32({1, 4}, {0, 1, 3, 2}), i64({1, 4}, {1, 0, 0, 0})});
  check_op("(int64[A] X, int64[1] k) => (int64[B] V, int64[C] I) { V, I = TopK(X, k) }", 11,
           {i64({3}, {5, INT64_MAX, -1}), i64({1}, {2})}, {i64({2}, {INT64_MAX, 5}), i64({2}, {1, 0})});
  check_op("(bfloat16[A] X, int64[1] k) => (bfloat16[B] V, int64[C] I) { V, I = TopK(X, k) }", 24,
           {bf16({3}, {1, 3, 2}), i64({1}, {1})}, {bf16({1}, {3}), i64({1}, {1})});
  check_op("(float[A] X, int64[1] k) => (float[B] V, int64[C] I) { V, I = TopK(X, k) }", 11,
           {f32({2}, {1, 2}), i64({1}, {0})}, {f32({0}, {}), i64({0}, {})});
}

TEST_CASE("TopK agrees with sorting for any k") {
  const Tensor x = noise({1, 500, 3});
  for (const std::int64_t k : {1, 7, 31, 32, 250, 500}) {
    std::vector<double> values;
    std::vector<double> indices;
    std::vector<std::vector<std::int64_t>> order(3);
    for (std::int64_t c = 0; c < 3; ++c) {
      order[static_cast<std::size_t>(c)].resize(500);
      std::iota(order[static_cast<std::size_t>(c)].begin(), order[static_cast<std::size_t>(c)].end(), 0);
      std::stable_sort(
          order[static_cast<std::size_t>(c)].begin(), order[static_cast<std::size_t>(c)].end(),
          [&](std::int64_t a, std::int64_t b) { return x.data<float>()[a * 3 + c] < x.data<float>()[b * 3 + c]; });
    }
    for (std::int64_t j = 0; j < k; ++j) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::int64_t at = order[c][static_cast<std::size_t>(j)];
        values.push_back(static_cast<double>(x.data<float>()[at * 3 + static_cast<std::int64_t>(c)]));
        indices.push_back(static_cast<double>(at));
      }
    }
    check_op(
        "(float[A,B,C] X, int64[1] k) => (float[D,E,F] V, int64[G,H,I] J) { V, J = TopK<axis=1, largest=0>(X, k) }", 11,
        {x, i64({1}, {k})},
        {tensor_as(DType::Float32, {1, k, 3}, values), tensor_as(DType::Int64, {1, k, 3}, indices)});
  }
}

/// TopK of noise with equal elements, zeros of both signs, infinities and NaN among it, against sorting.
void check_sorted(DType type, const Shape& shape, std::int64_t k, bool largest, bool sorted) {
  CAPTURE(tensor::name(type));
  CAPTURE(shape.to_string());
  CAPTURE(k);
  const std::int64_t outer = shape[0], count = shape[1], inner = shape[2];
  const bool real = type == DType::Float32 || type == DType::Float16;
  std::vector<double> x;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const std::int64_t v = i * i % 91 + i % 7;
    x.push_back(!real || v % 13 != 0 ? static_cast<double>(v)
                : v % 3 == 0         ? -0.0
                : v % 3 == 1         ? static_cast<double>(i % 2 == 0 ? kInf : -kInf)
                                     : static_cast<double>(kNaN));
  }
  std::vector<double> values(static_cast<std::size_t>(outer * k * inner)), places = values;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const auto at = [&](std::int64_t c) { return x[static_cast<std::size_t>((o * count + c) * inner + i)]; };
      std::vector<std::int64_t> order(static_cast<std::size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        const double p = at(largest ? a : b), q = at(largest ? b : a);
        return std::isnan(p) ? !std::isnan(q) : p > q;
      });
      if (!sorted) std::sort(order.begin(), order.begin() + k);
      for (std::int64_t j = 0; j < k; ++j) {
        const auto to = static_cast<std::size_t>((o * k + j) * inner + i);
        values[to] = at(order[static_cast<std::size_t>(j)]);
        places[to] = static_cast<double>(order[static_cast<std::size_t>(j)]);
      }
    }
  }
  check_op(
      cat("(X, k) => (V, I) { V, I = TopK<axis=1, largest=", largest ? 1 : 0, ", sorted=", sorted ? 1 : 0, ">(X, k) }"),
      24, {tensor_as(type, shape, x), i64({1}, {k})},
      {tensor_as(type, {outer, k, inner}, values), tensor_as(DType::Int64, {outer, k, inner}, places)});
}

TEST_CASE("TopK agrees with sorting for rows of every kind") {
  for (const DType type :
       {DType::Float32, DType::Float16, DType::Float64, DType::Int8, DType::UInt16, DType::Int32, DType::UInt32}) {
    for (const bool largest : {false, true}) {
      check_sorted(type, {1, 1, 5}, 1, largest, true);
      check_sorted(type, {37, 33, 1}, 5, largest, true);
      check_sorted(type, {3, 20, 11}, 8, largest, false);
      check_sorted(type, {2, 65, 3}, 40, largest, true);
      check_sorted(type, {3, 70, 1}, 70, largest, false);
      check_sorted(type, {1, 600, 2}, 300, largest, true);
    }
  }
  check_op("(X, k) => (V, I) { V, I = TopK<largest=0>(X, k) }", 11,
           {i32({3}, {INT32_MAX, INT32_MIN, 0}), i64({1}, {3})},
           {i32({3}, {INT32_MIN, 0, INT32_MAX}), i64({3}, {1, 2, 0})});
  check_op("(X, k) => (V, I) { V, I = TopK(X, k) }", 11, {i32({3}, {INT32_MIN, INT32_MAX, INT32_MIN}), i64({1}, {3})},
           {i32({3}, {INT32_MAX, INT32_MIN, INT32_MIN}), i64({3}, {1, 0, 2})});
}

TEST_CASE("TopK takes NaN for the greatest value") {
  const Tensor x = f32({3}, {1, kNaN, 2});
  check_op("(float[A] X, int64[1] k) => (float[B] V, int64[C] I) { V, I = TopK(X, k) }", 11, {x, i64({1}, {2})},
           {f32({2}, {kNaN, 2}), i64({2}, {1, 2})});
  check_op("(float[A] X, int64[1] k) => (float[B] V, int64[C] I) { V, I = TopK<largest=0>(X, k) }", 11,
           {x, i64({1}, {3})}, {f32({3}, {1, 2, kNaN}), i64({3}, {0, 2, 1})});
}

TEST_CASE("TopK refuses a k beyond the axis") {
  check_op_fails("(float[A] X, int64[1] k) => (V, I) { V, I = TopK(X, k) }", 11, {f32({2}, {1, 2}), i64({1}, {3})},
                 ErrorCode::InvalidArgument, "k argument [3] should not be greater than specified axis dim value [2]");
  CHECK(infer_op("(float[N,9] X, int64[1] k) => (V, I) { V, I = TopK(X, k) }", 11, {Value{}, i64({1}, {4})}) ==
        "tensor(float)[N,4]");
}

}  // namespace
}  // namespace infernode::test
