#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Where chooses by the condition, all three broadcast") {
  const char* text = "(C, X, Y) => (Z) { Z = Where(C, X, Y) }";
  check_op(text, 9, {b8({2, 2}, {true, false, true, true}), f32({2, 2}, {1, 2, 3, 4}), f32({2, 2}, {9, 8, 7, 6})},
           {f32({2, 2}, {1, 8, 3, 4})});
  check_op(text, 16, {b8({2, 1}, {true, false}), i64({1, 3}, {1, 2, 3}), i64({}, {0})},
           {i64({2, 3}, {1, 2, 3, 0, 0, 0})});
  check_op(text, 16, {b8({}, {false}), str({2}, {"a", "b"}), str({2}, {"c", "d"})}, {str({2}, {"c", "d"})});
  check_op(text, 16, {b8({2}, {true, false}), bf16({1}, {1}), bf16({1}, {2})}, {bf16({2}, {1, 2})});
  check_op(text, 9, {b8({0}, {}), f32({1}, {1}), f32({1}, {2})}, {f32({0}, {})});
  check_op_fails(text, 9, {b8({2}, {true, false}), f32({3}, {1, 2, 3}), f32({1}, {2})}, ErrorCode::ShapeMismatch,
                 "broadcast");
}

TEST_CASE("Every combination of repeated inputs is chosen from") {
  const char* text = "(C, X, Y) => (Z) { Z = Where(C, X, Y) }";
  const Tensor mask = b8({4}, {true, false, false, true});
  const Tensor x = f32({4}, {1, 2, 3, 4}), y = f32({4}, {5, 6, 7, 8}), one = f32({1}, {1}), nine = f32({}, {9});
  check_op(text, 16, {mask, x, y}, {f32({4}, {1, 6, 7, 4})});
  check_op(text, 16, {mask, one, y}, {f32({4}, {1, 6, 7, 1})});
  check_op(text, 16, {mask, x, nine}, {f32({4}, {1, 9, 9, 4})});
  check_op(text, 16, {mask, one, nine}, {f32({4}, {1, 9, 9, 1})});
  check_op(text, 16, {b8({1}, {true}), x, nine}, {x});
  check_op(text, 16, {b8({1}, {false}), x, nine}, {f32({4}, {9, 9, 9, 9})});
  const Tensor large = noise({3, 40001});
  check_op(text, 16, {b8({3, 1}, {true, false, true}), large, large}, {large});
}

TEST_CASE("Where passes on symbolic sizes") {
  const char* text =
      "(float[N,3] X, int64[1] minus, int64[1] one) => (Z) { S = Shape(X) E = Equal(S, minus) Z = Where(E, one, S) }";
  CHECK(infer_contents(text, 16, {Value{}, i64({1}, {-1}), i64({1}, {1})}) == "[N,3]");
}

}  // namespace
}  // namespace infernode::test
