#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Shape gives dims, all or a slice") {
  const Tensor x = f32({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  check_op("(float[N,M,K] X) => (Y) { Y = Shape(X) }", 1, {x}, {i64({3}, {2, 3, 1})});
  check_op("(float[N,M,K] X) => (Y) { Y = Shape<start=1>(X) }", 15, {x}, {i64({2}, {3, 1})});
  check_op("(float[N,M,K] X) => (Y) { Y = Shape<start=-2, end=-1>(X) }", 15, {x}, {i64({1}, {3})});
  check_op("(float[N,M,K] X) => (Y) { Y = Shape<start=-10, end=10>(X) }", 15, {x}, {i64({3}, {2, 3, 1})});
  check_op("(float[N,M,K] X) => (Y) { Y = Shape<start=2, end=1>(X) }", 15, {x}, {i64({0}, {})});
  check_op("(X) => (Y) { Y = Shape(X) }", 13, {f32({}, {1})}, {i64({0}, {})});
  check_op("(X) => (Y) { Y = Shape(X) }", 13, {str({2}, {"a", "b"})}, {i64({1}, {2})});
}

TEST_CASE("Size counts elements") {
  check_op("(float[N,3] X) => (Y) { Y = Size(X) }", 1, {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {i64({}, {6})});
  check_op("(X) => (Y) { Y = Size(X) }", 13, {f32({0, 3}, {})}, {i64({}, {0})});
  CHECK(infer_contents("(float[N,3] X) => (Y) { Y = Size(X) }", 13) == "[3*N]");
}

TEST_CASE("Shape of unknown rank is a vector of unknown length") {
  CHECK(infer_op("(float[] X) => (Y) { Y = Shape(X) }", 13) == "tensor(int64)[?]");
}

}  // namespace
}  // namespace infernode::test
