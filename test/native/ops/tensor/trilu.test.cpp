#include "ops/op_test.h"
#include "ops/written_cases.h"

namespace infernode::test {
namespace {

const EdgeCases edges(R"(
    Trilu | rows of no elements | 14 | 1e-05
    y0 = Trilu(x)
    float[3,0] x = {}
    float[3,0] y0 = {}

    Trilu | a scalar | 14 | 1e-05
    y0 = Trilu(x)
    float x = {1}
    refused
    )");

TEST_CASE("Trilu keeps one triangle") {
  const Tensor x = f32({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  check_op("(float[R,C] X) => (float[R,C] Y) { Y = Trilu(X) }", 14, {x},
           {f32({3, 4}, {1, 2, 3, 4, 0, 6, 7, 8, 0, 0, 11, 12})});
  check_op("(float[R,C] X) => (float[R,C] Y) { Y = Trilu<upper=0>(X) }", 14, {x},
           {f32({3, 4}, {1, 0, 0, 0, 5, 6, 0, 0, 9, 10, 11, 0})});
}

TEST_CASE("Trilu moves the diagonal by k, however far") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const struct {
    std::int64_t k;
    Tensor upper, lower;
  } cases[] = {
      {1, f32({2, 3}, {0, 2, 3, 0, 0, 6}), f32({2, 3}, {1, 2, 0, 4, 5, 6})},
      {-1, f32({2, 3}, {1, 2, 3, 4, 5, 6}), f32({2, 3}, {0, 0, 0, 4, 0, 0})},
      {INT64_MAX, f32({2, 3}, {0, 0, 0, 0, 0, 0}), x},
      {INT64_MIN, x, f32({2, 3}, {0, 0, 0, 0, 0, 0})},
  };
  for (const auto& c : cases) {
    CAPTURE(c.k);
    check_op("(float[2,3] X, int64 k) => (float[2,3] Y) { Y = Trilu<upper=1>(X, k) }", 14, {x, i64({}, {c.k})},
             {c.upper});
    check_op("(float[2,3] X, int64 k) => (float[2,3] Y) { Y = Trilu<upper=0>(X, k) }", 14, {x, i64({}, {c.k})},
             {c.lower});
  }
}

TEST_CASE("Trilu treats batches, other types and empty tensors") {
  check_op("(int64[N,2,2] X) => (int64[N,2,2] Y) { Y = Trilu(X) }", 14, {i64({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
           {i64({2, 2, 2}, {1, 2, 0, 4, 5, 6, 0, 8})});
  check_op("(string[2,2] X) => (string[2,2] Y) { Y = Trilu(X) }", 14, {str({2, 2}, {"a", "b", "c", "d"})},
           {str({2, 2}, {"a", "b", "", "d"})});
  check_op("(float[0,3] X) => (float[0,3] Y) { Y = Trilu(X) }", 14, {f32({0, 3}, {})}, {f32({0, 3}, {})});
}

TEST_CASE("Trilu refuses vectors and unknown versions") {
  check_op_fails("(float[3] X) => (float[3] Y) { Y = Trilu(X) }", 14, {f32({3}, {1, 2, 3})}, ErrorCode::ShapeMismatch,
                 "needs matrices");
  check_op_fails("(float[1,1] X) => (Y) { Y = Trilu(X) }", 13, {f32({1, 1}, {1})}, ErrorCode::UnsupportedOperator,
                 "from opset 14");
}

}  // namespace
}  // namespace infernode::test
