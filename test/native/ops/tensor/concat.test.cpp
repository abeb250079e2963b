#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Concat joins along any axis") {
  const Tensor a = f32({2, 2}, {1, 2, 3, 4}), b = f32({2, 1}, {5, 6}), c = f32({1, 2}, {7, 8});
  check_op("(float[A,B] a, float[C,D] b) => (float[E,F] Y) { Y = Concat(a, b) }", 1, {a, b},
           {f32({2, 3}, {1, 2, 5, 3, 4, 6})});
  check_op("(float[A,B] a, float[C,D] b) => (float[E,F] Y) { Y = Concat<axis=0>(a, b) }", 4, {a, c},
           {f32({3, 2}, {1, 2, 3, 4, 7, 8})});
  check_op("(float[A,B] a, float[C,D] b) => (float[E,F] Y) { Y = Concat<axis=-1>(a, b) }", 13, {a, b},
           {f32({2, 3}, {1, 2, 5, 3, 4, 6})});
  check_op("(string[A] a, string[B] b) => (string[C] Y) { Y = Concat<axis=0>(a, b) }", 13,
           {str({1}, {"x"}), str({2}, {"y", "z"})}, {str({3}, {"x", "y", "z"})});
  check_op("(float[A,B] a, float[C,D] b) => (float[E,F] Y) { Y = Concat<axis=1>(a, b) }", 13, {a, f32({2, 0}, {})},
           {a});
  check_op("(float[A] a) => (float[B] Y) { Y = Concat<axis=0>(a) }", 11, {f32({2}, {1, 2})}, {f32({2}, {1, 2})});
}

TEST_CASE("Concat takes parts without elements whatever their other dims and ranks") {
  const auto joined = [](std::string_view dims, std::int64_t axis, const std::vector<Value>& parts,
                         const Value& whole) {
    check_op(cat("(", dims, ") => (Y) { Y = Concat<axis=", axis, ">(a, b) }"), 13, parts, {whole});
  };
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const std::int64_t axis : {0, 1, -1}) {
    joined("a, b", axis, {x, f32({0, 0}, {})}, x);
    joined("a, b", axis, {f32({0, 0}, {}), x}, x);
    joined("a, b", axis, {x, f32({0, 1, 3}, {})}, x);
    joined("float[Z] a, float[A,B] b", axis, {f32({0}, {}), x}, x);
    joined("float[A,B] a, float[0,0] b", axis, {x, f32({0, 0}, {})}, x);
    joined("a, b", axis, {f32({0, 3}, {}), f32({0, 0}, {})}, f32({0, 3}, {}));
  }
  joined("a, b", 0, {x, f32({5, 0}, {})}, x);  // rows of nothing are none
  joined("a, b", 0, {f32({3, 0}, {}), f32({4, 0}, {})}, f32({7, 0}, {}));
  joined("float[A,4] a, float[C,5] b", 0, {f32({0, 4}, {}), f32({1, 5}, {1, 2, 3, 4, 5})},
         f32({1, 5}, {1, 2, 3, 4, 5}));
  joined("float[B,4,P,64] a, float[1,4,S,64] b", 2, {iota(DType::Float32, {0, 4, 0, 64}), noise({1, 4, 5, 64})},
         noise({1, 4, 5, 64}));
  joined("string[A,B] a, string[C] b", 0, {str({1, 1}, {"x"}), str({0}, {})}, str({1, 1}, {"x"}));
}

TEST_CASE("Concat refuses shapes that do not fit and scalars") {
  check_op_fails("(float[A,B] a, float[C,D] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13,
                 {f32({1, 2}, {1, 2}), f32({1, 1}, {3})}, ErrorCode::ShapeMismatch, "");
  check_op_fails("(float[A] a, float[C,D] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13,
                 {f32({1}, {1}), f32({1, 1}, {3})}, ErrorCode::ShapeMismatch, "");
  check_op_fails("(float a, float b) => (Y) { Y = Concat<axis=0>(a, b) }", 13, {f32({}, {1}), f32({}, {3})},
                 ErrorCode::InvalidArgument, "axis");
}

TEST_CASE("Concat adds symbolic dims and joins contents") {
  CHECK(infer_op("(float[N,4] a, float[M,4] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13) == "tensor(float)[M + N,4]");
  CHECK(infer_op("(float[N,4] a, float[M,P] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13) == "tensor(float)[M + N,4]");
  CHECK(infer_op("(float[N,4] a, float[0,3] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13) == "tensor(float)[N,4]");
  CHECK(infer_op("(float[N,4] a, float[3,0] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13) == "tensor(float)[N,4]");
  CHECK(infer_op("(float[N,4] a, float[2,5] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13) == "tensor(float)[2,5]");
  CHECK(infer_op("(float[N,P] a, float[3,0] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13) == "tensor(float)[N + ?,P]");
  CHECK(infer_op("(float[N,P] a, float[M,P,Q] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13) == "tensor(float)[...]");
  CHECK(infer_contents("(int64[2] a, int64[1] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13,
                       {i64({2}, {1, -1}), i64({1}, {3})}) == "[1,-1,3]");
  CHECK(infer_contents("(int64[2] a, int64[1] b) => (Y) { Y = Concat<axis=0>(a, b) }", 13,
                       {i64({2}, {1, -1}), Value{}}) == "[1,-1,?]");
}

}  // namespace
}  // namespace infernode::test
