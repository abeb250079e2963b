#include "ops/op_test.h"

namespace infernode::test {
namespace {

const char* kRange = "(A, B, C) => (Y) { Y = Range(A, B, C) }";

TEST_CASE("Range counts up, down and not at all") {
  check_op(kRange, 11, {i64({}, {3}), i64({}, {9}), i64({}, {3})}, {i64({2}, {3, 6})});
  check_op(kRange, 11, {i32({}, {10}), i32({}, {4}), i32({}, {-2})}, {i32({3}, {10, 8, 6})});
  check_op(kRange, 11, {i64({1}, {3}), i64({1}, {3}), i64({1}, {1})}, {i64({0}, {})});
  check_op(kRange, 11, {f32({}, {0}), f32({}, {1}), f32({}, {0.3f})}, {f32({4}, {0, 0.3f, 0.6f, 0.9f})});
  check_op(kRange, 11, {f64({}, {1}), f64({}, {0}), f64({}, {-0.5})}, {f64({2}, {1, 0.5})});
  check_op(kRange, 27, {bf16({}, {250}), bf16({}, {262}), bf16({}, {2})}, {bf16({6}, {250, 252, 254, 256, 258, 260})},
           0);
}

TEST_CASE("Range refuses what it cannot count") {
  check_op_fails(kRange, 11, {i64({}, {0}), i64({}, {5}), i64({}, {0})}, ErrorCode::InvalidArgument, "delta is 0");
  check_op_fails(kRange, 11, {i64({2}, {0, 1}), i64({}, {5}), i64({}, {1})}, ErrorCode::ShapeMismatch, "one number");
  check_op_fails(kRange, 11, {i64({}, {INT64_MIN}), i64({}, {INT64_MAX}), i64({}, {1})}, ErrorCode::OutOfMemory, "");
}

TEST_CASE("Range to a symbolic limit has a symbolic length") {
  CHECK(infer_op("(float[N] X, int64 zero, int64 one) => (Y) { S = Size(X) Y = Range(zero, S, one) }", 11,
                 {Value{}, i64({}, {0}), i64({}, {1})}) == "tensor(int64)[N]");
}

TEST_CASE("Range between symbols is empty where it would have to go the other way") {
  const auto range = [](std::string_view arguments) {
    return infer_op(cat("(float[N] X, int64 one, int64 minus) => (Y) { n = Size(X)  Y = Range(", arguments, ") }"), 11,
                    {Value{}, i64({}, {1}), i64({}, {-2})});
  };
  CHECK(range("one, n, one") == "tensor(int64)[N - 1]");
  CHECK(range("n, one, one") == "tensor(int64)[max(0, -N + 1)]");
  CHECK(range("n, one, minus") == "tensor(int64)[floor(N/2)]");
  CHECK(range("n, n, one") == "tensor(int64)[0]");
}

}  // namespace
}  // namespace infernode::test
