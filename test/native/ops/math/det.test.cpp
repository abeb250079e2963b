#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("Det computes determinants of stacked matrices") {
  check_op("(float[A,B] X) => (float Y) { Y = Det(X) }", 11, {f32({2, 2}, {0, 2, 3, 4})}, {f32({}, {-6})});
  check_op("(float[N,A,B] X) => (float[N] Y) { Y = Det(X) }", 22, {f32({2, 2, 2}, {1, 2, 2, 4, 2, 0, 0, 3})},
           {f32({2}, {0, 6})});
  check_op("(double[A,B] X) => (double Y) { Y = Det(X) }", 11, {f64({3, 3}, {2, -1, 0, -1, 2, -1, 0, -1, 2})},
           {f64({}, {4})});
  check_op("(float[N,0,0] X) => (float[N] Y) { Y = Det(X) }", 11, {f32({1, 0, 0}, {})}, {f32({1}, {1})});
  check_op_fails("(float[A,B] X) => (Y) { Y = Det(X) }", 11, {f32({1, 2}, {1, 2})}, ErrorCode::ShapeMismatch, "square");
}

}  // namespace
}  // namespace infernode::test
