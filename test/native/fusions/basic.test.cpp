// Level basic: rewritings that keep to the standard's operators.
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("(1 / x) * y") {
  check_optimized("(float[2,3] x, float[3] y) => (z) <float one = {1}> { d = Div(one, x)  z = Mul(d, y) }", 1,
                  "z = Div (y, x)");
  check_optimized("(float[N] x, float[N] y) => (z) <float[1] one = {1}> { d = Div(one, x)  z = Mul(y, d) }", 1,
                  "z = Div (y, x)");
  check_unchanged("(float[2] x, float[2] y) => (z) <float two = {2}> { d = Div(two, x)  z = Mul(d, y) }", 1);
  check_unchanged("(float[2] x, float[2] y) => (z, d) <float one = {1}> { d = Div(one, x)  z = Mul(d, y) }", 1);
  check_unchanged(
      "(float[2] x, float[2] y) => (z) <float one = {1}> { d = Div(one, x)  e = Neg(d)  f = Mul(d, y)  "
      "z = Add(e, f) }",
      1);
  check_unchanged("(float[2] x, float[2] y, float one = {1}) => (z) { d = Div(one, x)  z = Mul(d, y) }", 1);
  check_unchanged("(float[2] x, float[2] y) => (z) <float[1,1] one = {1}> { d = Div(one, x)  z = Mul(d, y) }", 1);
}

TEST_CASE("whole numbers are divided before they are multiplied") {
  graph::Model model = parse("(int64[2] x, int64[2] y) => (z) <int64 one = {1}> { d = Div(one, x)  z = Mul(d, y) }");
  CHECK(optimize(model, 1).empty());
}

TEST_CASE("Relu before Clip") {
  check_optimized("(float[4] x) => (y) <float a = {-1}, float b = {0.5}> { r = Relu(x)  y = Clip(r, a, b) }", 1,
                  "y = Clip (x, _min, b)");
  check_optimized("(float[4] x) => (y) <float a = {0.25}, float b = {0.5}> { r = Relu(x)  y = Clip(r, a, b) }", 1,
                  "y = Clip (x, a, b)");
  check_optimized("(float[N] x) => (y) <float b = {0.5}> { r = Relu(x)  y = Clip(r, , b) }", 1,
                  "y = Clip (x, _min, b)");
  check_optimized("(float[N] x) => (y) { r = Relu(x)  y = Clip<max = 0.5>(r) }", 1,
                  "y = Clip <max = 0.5, min = 0.0> (x)", 10);
  check_unchanged("(float[4] x, float a) => (y) { r = Relu(x)  y = Clip(r, a) }", 1);
  check_unchanged("(float[4] x) => (y, r) <float a = {-1}> { r = Relu(x)  y = Clip(r, a) }", 1);
  check_unchanged("(float[4] x) => (y) <float a = {-1}> { r = Relu(x)  c = Clip(r, a)  y = Sub(r, c) }", 1);
}

TEST_CASE("transposes of a Gemm's matrices and of its product") {
  check_optimized(
      "(float[3,2] x, float[3,4] b, float[4] c) => (y) { t = Transpose<perm = [1,0]>(x)  y = Gemm(t, b, c) }", 1,
      "y = Gemm <transA = 1> (x, b, c)");
  check_optimized("(float[2,3] a, float[4,3] x) => (y) { t = Transpose(x)  y = Gemm<transB = 0>(a, t) }", 1,
                  "y = Gemm <transB = 1> (a, x)");
  check_optimized("(float[2,3] a, float[3,4] x) => (y) { t = Transpose(x)  y = Gemm<transB = 1>(a, t) }", 1,
                  "y = Gemm <transB = 0> (a, x)");
  check_optimized("(float[2,3] a, float[3,4] b) => (y) { t = Gemm<alpha = 2.0>(a, b)  y = Transpose(t) }", 1,
                  "y = Gemm <alpha = 2.0, transA = 1, transB = 1> (b, a)");
  check_unchanged("(float[3,2] x, float[3,4] b) => (y, t) { t = Transpose(x)  y = Gemm(t, b) }", 1);
  check_unchanged("(float[3,3] x, float[3,3] b) => (y) { t = Transpose(x)  u = Gemm(t, b)  y = Add(u, t) }", 1);
  check_unchanged("(float[2,3] a, float[3,4] b, float[4] c) => (y) { t = Gemm(a, b, c)  y = Transpose(t) }", 1);
}

TEST_CASE("a sum with a Gemm") {
  check_optimized("(float[M,3] a, float[3,4] b, float[M,4] c) => (y) { t = Gemm(a, b)  y = Sum(t, c) }", 1,
                  "y = Gemm <beta = 1.0> (a, b, c)");
  check_optimized("(float[2,3] a, float[3,4] b, float[4] c) => (y) { t = Gemm<alpha = 0.5>(a, b)  y = Sum(c, t) }", 1,
                  "y = Gemm <alpha = 0.5, beta = 1.0> (a, b, c)");
  check_unchanged("(float[1,3] a, float[3,4] b, float[2,4] c) => (y) { t = Gemm(a, b)  y = Sum(t, c) }", 1);
  check_unchanged("(float[2,3] a, float[3,4] b, float[4] c) => (y) { t = Gemm(a, b)  y = Sum(t, c, c) }", 1);
  check_unchanged("(float[2,3] a, float[3,4] b, float[4] c) => (y, t) { t = Gemm(a, b)  y = Sum(t, c) }", 1);
  check_unchanged("(float[2,3] a, float[3,4] b, float[4] c, float[4] d) => (y) { t = Gemm(a, b, d)  y = Sum(t, c) }",
                  1);
}

TEST_CASE("a sum that may have more rows than the Gemm stays") {
  graph::Model model = parse("(float[2,3] a, float[3,4] b, float[K,4] c) => (y) { t = Gemm(a, b)  y = Sum(t, c) }");
  CHECK(optimize(model, 1).empty());
}

TEST_CASE("Not before Where") {
  check_optimized("(bool[2] c, float[2] x, float[2] z) => (y) { n = Not(c)  y = Where(n, x, z) }", 1,
                  "y = Where (c, z, x)");
  check_unchanged("(bool[2] c, float[2] x, float[2] z) => (y, n) { n = Not(c)  y = Where(n, x, z) }", 1);
  check_unchanged(
      "(bool[2] c, float[2] x, float[2] z) => (u, v) { n = Not(c)  u = Where(n, x, z)  v = Where(n, z, x) }", 1);
}

TEST_CASE("pads before pools") {
  check_optimized(
      "(float[1,2,4,4] x) => (y) <int64[8] p = {0,0,1,0,0,0,0,1}> { t = Pad(x, p)  "
      "y = AveragePool<kernel_shape = [2,2]>(t) }",
      1, "y = AveragePool <count_include_pad = 1, kernel_shape = [2, 2], pads = [1, 0, 0, 1]> (x)");
  check_optimized(
      "(float[1,2,4,4] x) => (y) <int64[8] p = {0,0,1,1,0,0,1,1}, float f = {-inf}> { t = Pad(x, p, f)  "
      "y = MaxPool<kernel_shape = [3,3]>(t) }",
      1, "y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)");
  // Zeros are the largest where all else is negative.
  check_unchanged(
      "(float[1,2,4,4] x) => (y) <int64[8] p = {0,0,1,1,0,0,1,1}> { t = Pad(x, p)  "
      "y = MaxPool<kernel_shape = [3,3]>(t) }",
      1);
  // Own pads that do not count stay apart from those that do.
  check_unchanged(
      "(float[1,2,4,4] x) => (y) <int64[8] p = {0,0,1,1,0,0,1,1}> { t = Pad(x, p)  "
      "y = AveragePool<kernel_shape = [3,3], pads = [1,1,1,1]>(t) }",
      1);
  check_unchanged(
      "(float[1,2,4,4] x) => (y) <int64[8] p = {0,1,1,1,0,0,1,1}> { t = Pad(x, p)  "
      "y = AveragePool<kernel_shape = [3,3]>(t) }",
      1);
  check_unchanged(
      "(float[1,2,4,4] x) => (y) <int64[8] p = {0,0,3,0,0,0,0,0}> { t = Pad(x, p)  "
      "y = AveragePool<kernel_shape = [2,2]>(t) }",
      1);
  check_unchanged(
      "(float[1,2,4,4] x) => (y, t) <int64[8] p = {0,0,1,1,0,0,1,1}> { t = Pad(x, p)  "
      "y = AveragePool<kernel_shape = [3,3]>(t) }",
      1);
}
