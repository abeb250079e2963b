#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Unique sorts, or keeps the order of first occurrence") {
  const Tensor x = f32({6}, {2, 1, 1, 3, 4, 3});
  check_op("(float[A] X) => (float[B] Y, int64[C] I, int64[D] V, int64[E] N) { Y, I, V, N = Unique(X) }", 11, {x},
           {f32({4}, {1, 2, 3, 4}), i64({4}, {1, 0, 3, 4}), i64({6}, {1, 0, 0, 2, 3, 2}), i64({4}, {2, 1, 2, 1})});
  check_op("(float[A] X) => (float[B] Y, int64[C] I, int64[D] V, int64[E] N) { Y, I, V, N = Unique<sorted=0>(X) }", 11,
           {x}, {f32({4}, {2, 1, 3, 4}), i64({4}, {0, 1, 3, 4}), i64({6}, {0, 1, 1, 2, 3, 2}), i64({4}, {1, 2, 2, 1})});
  check_op("(string[A,B] X) => (string[C] Y) { Y = Unique(X) }", 11, {str({2, 2}, {"b", "a", "b", "c"})},
           {str({3}, {"a", "b", "c"})});
  check_op("(float[A] X) => (float[B] Y) { Y = Unique(X) }", 11, {f32({4}, {kNaN, 1, kNaN, -1})},
           {f32({3}, {-1, 1, kNaN})});
  check_op("(int64[A] X) => (int64[B] Y, int64[C] N) { Y, , , N = Unique(X) }", 11, {i64({0}, {})},
           {i64({0}, {}), i64({0}, {})});
}

TEST_CASE("Unique compares slices along an axis") {
  check_op("(int32[A,B] X) => (int32[C,D] Y, int64[E] I, int64[F] V, int64[G] N) { Y, I, V, N = Unique<axis=0>(X) }",
           11, {i32({3, 2}, {2, 0, 1, 0, 2, 0})},
           {i32({2, 2}, {1, 0, 2, 0}), i64({2}, {1, 0}), i64({3}, {1, 0, 1}), i64({2}, {1, 2})});
  check_op("(int32[A,B] X) => (int32[C,D] Y) { Y = Unique<axis=-1>(X) }", 11, {i32({2, 3}, {1, 0, 1, 2, 3, 2})},
           {i32({2, 2}, {0, 1, 3, 2})});
}

TEST_CASE("Unique counts slices without elements") {
  constexpr std::int64_t kMany = std::int64_t{1} << 33;
  check_op("(X) => (Y, I, N) { Y, I, , N = Unique<axis=0>(X) }", 11, {f32({kMany, 0}, {})},
           {f32({1, 0}, {}), i64({1}, {0}), i64({1}, {kMany})});
  check_op("(X) => (Y, V) { Y, , V = Unique<axis=1>(X) }", 11, {f32({0, 3}, {})},
           {f32({0, 1}, {}), i64({3}, {0, 0, 0})});
}

TEST_CASE("Unique of com.microsoft gives values, inverse and counts") {
  check_op(
      "<ir_version: 8, opset_import: [\"\" : 13, \"com.microsoft\" : 1]> g (float[A] X) => (float[B] Y, int64[C] I, "
      "int64[D] N)"
      " { Y, I, N = com.microsoft.Unique(X) }",
      13, {f32({3}, {5, 1, 5})}, {f32({2}, {5, 1}), i64({3}, {0, 1, 0}), i64({2}, {2, 1})});
}

}  // namespace
}  // namespace infernode::test
