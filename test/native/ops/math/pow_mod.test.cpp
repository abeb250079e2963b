#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Pow raises floats") {
  check_op("(A, B) => (C) { C = Pow(A, B) }", 15, {f32({5}, {2, 4, -2, 0, -8}), f32({5}, {3, 0.5, 3, 0, 0.5})},
           {f32({5}, {8, 2, -8, 1, kNaN})});
  check_op("(A, B) => (C) { C = Pow(A, B) }", 7, {f32({3}, {1, -2, 3}), f32({}, {2})}, {f32({3}, {1, 4, 9})});
  check_op("(A, B) => (C) { C = Pow(A, B) }", 7, {f32({3}, {1, -2, 4}), f32({1}, {-1})}, {f32({3}, {1, -0.5, 0.25})});
  check_op("(A, B) => (C) { C = Pow(A, B) }", 13, {f16({2}, {3, 0.5}), f16({2}, {2, 3})}, {f16({2}, {9, 0.125})});
  check_op("(A, B) => (C) { C = Pow(A, B) }", 15, {f64({2}, {2, 9}), f64({}, {0.5})}, {f64({2}, {std::sqrt(2.0), 3})},
           1e-12);
  check_op("(A, B) => (C) { C = Pow<broadcast=1, axis=0>(A, B) }", 1, {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {1, 2})},
           {f32({2, 2}, {1, 2, 9, 16})});
}

TEST_CASE("Pow mixes types and keeps the base's") {
  check_op("(A, B) => (C) { C = Pow(A, B) }", 12, {i64({4}, {2, -3, 10, 0}), i32({4}, {10, 3, 0, 0})},
           {i64({4}, {1024, -27, 1, 1})});
  check_op("(A, B) => (C) { C = Pow(A, B) }", 12, {f32({3}, {1, 2, 3}), i64({3}, {4, 5, 6})}, {f32({3}, {1, 32, 729})});
  check_op("(A, B) => (C) { C = Pow(A, B) }", 12, {i32({3}, {4, 9, 2}), f32({3}, {0.5, 0.5, -1})},
           {i32({3}, {2, 3, 0})});
  check_op("(A, B) => (C) { C = Pow(A, B) }", 15, {i32({5}, {1, -1, -1, 2, 0}), i32({5}, {-3, -3, -2, -1, -1})},
           {i32({5}, {1, -1, 1, 0, 0})});
  check_op("(A, B) => (C) { C = Pow(A, B) }", 15, {bf16({2}, {2, 3}), u8({2}, {3, 2})}, {bf16({2}, {8, 9})});
  CHECK(infer_op("(int64[N,1] A, float[M] B) => (C) { C = Pow(A, B) }", 15) == "tensor(int64)[N,M]");
}

TEST_CASE("Mod follows the divisor's sign, fmod the dividend's") {
  const Tensor a = i32({6}, {-4, 7, 5, 4, -7, 8}), b = i32({6}, {2, -3, 8, -2, 3, 5});
  check_op("(A, B) => (C) { C = Mod(A, B) }", 13, {a, b}, {i32({6}, {0, -2, 5, 0, 2, 3})});
  check_op("(A, B) => (C) { C = Mod<fmod=1>(A, B) }", 13, {a, b}, {i32({6}, {0, 1, 5, 0, -1, 3})});
  check_op("(A, B) => (C) { C = Mod<fmod=1>(A, B) }", 10, {f32({3}, {-4.3f, 7.2f, 5}), f32({3}, {2.1f, -3.4f, 8})},
           {f32({3}, {-0.1f, 0.4f, 5})});
  check_op("(A, B) => (C) { C = Mod(A, B) }", 28, {f32({4}, {-4.3f, 7.2f, kInf, 3}), f32({4}, {2.1f, -3.4f, 2, kInf})},
           {f32({4}, {2.0f, -3.0f, kNaN, 3})});
  check_op("(A, B) => (C) { C = Mod<fmod=1>(A, B) }", 13, {f16({2}, {-4.5, 7}), f16({2}, {2, 4})},
           {f16({2}, {-0.5, 3})});
}

TEST_CASE("Mod of floats broadcasts over short and long rows") {
  for (const DType type : {DType::Float32, DType::Float16, DType::Float64}) {
    for (const std::int64_t n : {1, 3, 12, 65, 1500}) {
      CAPTURE(n);
      std::vector<double> a, b, rest, positive;
      for (std::int64_t i = 0; i < 9 * n; ++i) a.push_back(static_cast<double>(i * 29 % 41) - 20);
      for (std::int64_t i = 0; i < n; ++i) b.push_back(i % 3 == 0 ? 7 : i % 3 == 1 ? 2.5 : 4);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double y = b[i % b.size()];
        rest.push_back(std::fmod(a[i], y));
        positive.push_back(a[i] - std::floor(a[i] / y) * y);
      }
      const Tensor x = tensor_as(type, {9, n}, a), y = tensor_as(type, {n}, b);
      check_op("(A, B) => (C) { C = Mod<fmod=1>(A, B) }", 13, {x, y}, {tensor_as(type, {9, n}, rest)});
      check_op("(A, B) => (C) { C = Mod(A, B) }", 28, {x, y}, {tensor_as(type, {9, n}, positive)});
    }
  }
}

TEST_CASE("Mod never traps") {
  check_op("(A, B) => (C) { C = Mod(A, B) }", 13, {i64({3}, {5, INT64_MIN, -5}), i64({3}, {0, -1, 0})},
           {i64({3}, {0, 0, 0})});
  check_op("(A, B) => (C) { C = Mod<fmod=1>(A, B) }", 13, {i32({2}, {5, INT32_MIN}), i32({2}, {0, -1})},
           {i32({2}, {0, 0})});
  check_op("(A, B) => (C) { C = Mod(A, B) }", 13, {u8({2}, {5, 250}), u8({2}, {0, 7})}, {u8({2}, {0, 5})});
}

}  // namespace
}  // namespace infernode::test
