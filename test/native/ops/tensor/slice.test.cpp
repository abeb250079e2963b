#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Slice takes its ranges from attributes before version 10") {
  const Tensor x = iota(DType::Float32, {4, 3});
  check_op("(float[A,B] X) => (float[C,D] Y) { Y = Slice<starts=[1,0], ends=[3,2]>(X) }", 1, {x},
           {f32({2, 2}, {3, 4, 6, 7})});
  check_op("(float[A,B] X) => (float[C,D] Y) { Y = Slice<axes=[1], starts=[-1], ends=[1000]>(X) }", 1, {x},
           {f32({4, 1}, {2, 5, 8, 11})});
}

TEST_CASE("Slice steps forwards and backwards and clamps") {
  const Tensor x = iota(DType::Int32, {6});
  const struct {
    std::int64_t start, end, step;
    std::vector<double> expected;
  } cases[] = {
      {0, 6, 1, {0, 1, 2, 3, 4, 5}},
      {1, 6, 2, {1, 3, 5}},
      {-2, INT64_MAX, 1, {4, 5}},
      {-100, 2, 1, {0, 1}},
      {5, 0, -1, {5, 4, 3, 2, 1}},
      {-1, INT64_MIN, -1, {5, 4, 3, 2, 1, 0}},
      {INT64_MAX, INT64_MIN, -2, {5, 3, 1}},
      {4, 2, 1, {}},
      {2, 4, -1, {}},
      {2, INT64_MAX, -1, {2, 1, 0}},
      {-1, INT32_MAX, -2, {5, 3, 1}},
      {2, INT64_MAX - 1, -1, {}},
      {3, INT64_MAX, INT64_MAX, {3}},
      {3, INT64_MIN, INT64_MIN, {3}},
      {100, 200, 1, {}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.start);
    CAPTURE(c.end);
    CAPTURE(c.step);
    check_op(
        "(int32[A] X, int64[1] s, int64[1] e, int64[1] a, int64[1] t) => (int32[B] Y) { Y = Slice(X, s, e, a, t) }", 13,
        {x, i64({1}, {c.start}), i64({1}, {c.end}), i64({1}, {0}), i64({1}, {c.step})},
        {tensor_as(DType::Int32, {static_cast<std::int64_t>(c.expected.size())}, c.expected)});
  }
}

TEST_CASE("Slice takes int32 arguments, negative axes and inner blocks") {
  const Tensor x = iota(DType::Float32, {2, 3, 4});
  check_op("(float[A,B,C] X, int32[2] s, int32[2] e, int32[2] a) => (float[D,E,F] Y) { Y = Slice(X, s, e, a) }", 10,
           {x, i32({2}, {1, 1}), i32({2}, {3, 4}), i32({2}, {-2, 2})},
           {f32({2, 2, 3}, {5, 6, 7, 9, 10, 11, 17, 18, 19, 21, 22, 23})});
  check_op(
      "(float[A,B,C] X, int64[2] s, int64[2] e, int64[2] a, int64[2] t) => (float[D,E,F] Y) { Y = Slice(X, s, e, a, t) "
      "}",
      11, {x, i64({2}, {2, 3}), i64({2}, {-100, -100}), i64({2}, {1, 2}), i64({2}, {-2, -3})},
      {f32({2, 2, 2}, {11, 8, 3, 0, 23, 20, 15, 12})});
  check_op("(string[3] X, int64[1] s, int64[1] e) => (string[A] Y) { Y = Slice(X, s, e) }", 13,
           {str({3}, {"a", "b", "c"}), i64({1}, {1}), i64({1}, {3})}, {str({2}, {"b", "c"})});
  check_op("(float[0,3] X, int64[1] s, int64[1] e) => (float[A,B] Y) { Y = Slice(X, s, e) }", 13,
           {f32({0, 3}, {}), i64({1}, {-1}), i64({1}, {9})}, {f32({0, 3}, {})});
}

TEST_CASE("Slice refuses a zero step, repeated axes and lists of different lengths") {
  const Tensor x = iota(DType::Int32, {6});
  check_op_fails("(int32[A] X, int64[1] s, int64[1] e, int64[1] a, int64[1] t) => (Y) { Y = Slice(X, s, e, a, t) }", 13,
                 {x, i64({1}, {0}), i64({1}, {3}), i64({1}, {0}), i64({1}, {0})}, ErrorCode::InvalidArgument,
                 "step is 0");
  check_op_fails("(int32[A] X, int64[2] s, int64[2] e, int64[2] a) => (Y) { Y = Slice(X, s, e, a) }", 13,
                 {x, i64({2}, {0, 0}), i64({2}, {3, 3}), i64({2}, {0, -1})}, ErrorCode::InvalidArgument, "twice");
  check_op_fails("(int32[A] X, int64[1] s, int64[2] e) => (Y) { Y = Slice(X, s, e) }", 13,
                 {x, i64({1}, {0}), i64({2}, {3, 3})}, ErrorCode::InvalidArgument, "2 ends");
}

TEST_CASE("Slice keeps symbols where the range allows it") {
  const char* text = "(float[N,8] X, int64[1] s, int64[1] e, int64[1] a) => (Y) { Y = Slice(X, s, e, a) }";
  CHECK(infer_op(text, 13, {Value{}, i64({1}, {0}), i64({1}, {INT64_MAX}), i64({1}, {0})}) == "tensor(float)[N,8]");
  CHECK(infer_op(text, 13, {Value{}, i64({1}, {2}), i64({1}, {-1}), i64({1}, {1})}) == "tensor(float)[N,5]");
  CHECK(infer_op(text, 13, {Value{}, Value{}, Value{}, i64({1}, {1})}) == "tensor(float)[N,?]");
}

TEST_CASE("Slice from or to a symbol keeps as much as there is") {
  const auto sliced = [](std::string_view range) {
    return infer_op(cat("(float[N] X, float[M] Y, int64[1] zero, int64[1] most) => (Z) { n = Shape(Y)  minus = Neg(n) ",
                        "  Z = Slice(X, ", range, ") }"),
                    13, {Value{}, Value{}, i64({1}, {0}), i64({1}, {INT64_MAX})});
  };
  CHECK(sliced("n, most") == "tensor(float)[max(0, -M + N)]");
  CHECK(sliced("minus, most") == "tensor(float)[min(M, N)]");
  CHECK(sliced("zero, n") == "tensor(float)[min(M, N)]");
  CHECK(sliced("zero, minus") == "tensor(float)[max(0, -M + N)]");
  CHECK(sliced("minus, n") == "tensor(float)[max(0, min(M, N) - max(0, -M + N))]");
}

TEST_CASE("Slice cuts contents") {
  const char* text = "(int64[4] X, int64[1] s, int64[1] e, int64[1] a, int64[1] t) => (Y) { Y = Slice(X, s, e, a, t) }";
  CHECK(infer_contents(
            text, 13, {i64({4}, {5, 6, 7, 8}), i64({1}, {1}), i64({1}, {3}), i64({1}, {0}), i64({1}, {1})}) == "[6,7]");
  CHECK(infer_contents(text, 13,
                       {i64({4}, {5, 6, 7, 8}), i64({1}, {-1}), i64({1}, {-9}), i64({1}, {0}), i64({1}, {-2})}) ==
        "[8,6]");
}

}  // namespace
}  // namespace infernode::test
