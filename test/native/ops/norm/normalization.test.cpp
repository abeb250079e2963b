#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("LpNormalization divides by the norm, and leaves zeros zero") {
  const Tensor x = f32({2, 2}, {3, 4, 0, 0});
  check_op("(float[N,2] X) => (float[N,2] Y) { Y = LpNormalization(X) }", 1, {x}, {f32({2, 2}, {0.6, 0.8, 0, 0})});
  check_op("(float[N,2] X) => (float[N,2] Y) { Y = LpNormalization<p=1, axis=1>(X) }", 22, {x},
           {f32({2, 2}, {3 / 7.0f, 4 / 7.0f, 0, 0})});
  check_op("(float[N,2] X) => (float[N,2] Y) { Y = LpNormalization<axis=0>(X) }", 22, {f32({2, 2}, {3, 0, 4, -2})},
           {f32({2, 2}, {0.6, 0, 0.8, -1})});
  check_float_types("(X) => (Y) { Y = LpNormalization<axis=1>(X) }", 22, {noise({3, 7, 5})});
  check_op_fails("(X) => (Y) { Y = LpNormalization<p=3>(X) }", 22, {x}, ErrorCode::InvalidModel, "p is 3");
}

TEST_CASE("MeanVarianceNormalization takes one mean over all its axes") {
  check_op("(float[2,1,1,2] X) => (float[2,1,1,2] Y) { Y = MeanVarianceNormalization(X) }", 13,
           {f32({2, 1, 1, 2}, {1, 1, 3, 3})}, {f32({2, 1, 1, 2}, {-1, -1, 1, 1})});
  check_op("(float[2,2] X) => (float[2,2] Y) { Y = MeanVarianceNormalization<axes=[-1]>(X) }", 9,
           {f32({2, 2}, {1, 3, 10, 50})}, {f32({2, 2}, {-1, 1, -1, 1})});
  check_float_types("(X) => (Y) { Y = MeanVarianceNormalization<axes=[1,3]>(X) }", 13, {noise({2, 3, 4, 5})});
}

TEST_CASE("LRN divides by the squares of neighbouring channels") {
  check_op("(float[1,3,1] X) => (float[1,3,1] Y) { Y = LRN<size=3, alpha=3.0, beta=1.0, bias=1.0>(X) }", 13,
           {f32({1, 3, 1}, {1, 2, 3})}, {f32({1, 3, 1}, {1 / 6.0f, 2 / 15.0f, 3 / 14.0f})});
  // An even size reaches further behind than before.
  check_op("(float[1,3,1] X) => (float[1,3,1] Y) { Y = LRN<size=2, alpha=2.0, beta=1.0, bias=1.0>(X) }", 1,
           {f32({1, 3, 1}, {1, 2, 3})}, {f32({1, 3, 1}, {1 / 6.0f, 2 / 14.0f, 3 / 10.0f})});
  check_float_types("(X) => (Y) { Y = LRN<size=5>(X) }", 13, {noise({2, 9, 17, 19}, 20)});
  check_op_fails("(X) => (Y) { Y = LRN<size=0>(X) }", 13, {noise({1, 2, 3})}, ErrorCode::InvalidModel, "size");
}

}  // namespace
}  // namespace infernode::test
