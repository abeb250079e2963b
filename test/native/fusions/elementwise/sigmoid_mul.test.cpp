#include "fusions/graph_test.h"

using namespace infernode::test;

TEST_CASE("x * sigmoid(x)") {
  check_optimized("(float[N,5] x) => (y) { s = Sigmoid(x)  y = Mul(s, x) }", 2,
                  "y = com.microsoft.QuickGelu <alpha = 1.0> (x)");
  check_optimized("(float[N,5] x) => (y) <float a = {1.5}> { m = Mul(a, x)  s = Sigmoid(m)  y = Mul(x, s) }", 2,
                  "y = com.microsoft.QuickGelu <alpha = 1.5> (x)");
  check_optimized("(float[N,5] x) => (y) <float a = {1.702}> { m = Mul(x, a)  s = Sigmoid(m)  y = Mul(s, x) }", 2,
                  "y = com.microsoft.QuickGelu <alpha = 1.702> (x)");
  check_unchanged("(float[5] x, float[5] z) => (y) { s = Sigmoid(x)  y = Mul(z, s) }", 2);
  check_unchanged("(float[5] x) => (y, s) { s = Sigmoid(x)  y = Mul(x, s) }", 2);
  check_unchanged("(double[5] x) => (y) { s = Sigmoid(x)  y = Mul(x, s) }", 2);
}
