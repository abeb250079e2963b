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
