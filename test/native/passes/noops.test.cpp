#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("x + 0, x - 0, x * 1 and x / 1") {
  check_optimized(
      "(float[2,3] x) => (y) <float zero = {0}, float[1] one = {1}> { a = Add(zero, x)  b = Sub(a, zero)  "
      "c = Mul(b, one)  d = Div(c, one)  y = Exp(d) }",
      1, "y = Exp (x)");
  check_optimized("(int64[N] x) => (y) <int64 zero = {0}> { a = Add(x, zero)  y = Neg(a) }", 1, "y = Neg (x)");
}

TEST_CASE("a sum or product that changes something stays") {
  check_unchanged("(float[2] x) => (y) <float zero = {0}> { a = Sub(zero, x)  y = Exp(a) }", 1);
  check_unchanged("(float[2] x) => (y) <float one = {1}> { a = Div(one, x)  y = Exp(a) }", 1);
  check_unchanged("(float[2] x) => (y) <float[1,1] one = {1}> { a = Mul(x, one)  y = Exp(a) }", 1);  // raises the rank
  check_unchanged("(float[1] x) => (y) <float[2] one = {1, 1}> { a = Mul(x, one)  y = Exp(a) }", 1);
  check_unchanged("(float[2] x, float zero = {0}) => (y) { a = Add(x, zero)  y = Exp(a) }", 1);  // can be fed
  check_unchanged("(double[2] x) => (y) <double one = {1.0000000000001}> { a = Mul(x, one)  y = Exp(a) }", 1);
  check_unchanged("(float[2] x) => (y) <float zero = {0}> { y = Add(x, zero) }", 1);  // from the input to the output
}

TEST_CASE("a Slice of everything goes") {
  check_optimized(
      "(float[2,3] x) => (y) <int64[2] s = {0, 0}, int64[2] e = {2, 99}> { a = Slice(x, s, e)  y = Exp(a) }", 1,
      "y = Exp (x)");
  check_optimized("(float[2,3] x) => (y) { a = Slice<starts = [0], ends = [2]>(x)  y = Exp(a) }", 1, "y = Exp (x)", 9);
  check_unchanged("(float[2,3] x) => (y) <int64[1] s = {0}, int64[1] e = {1}> { a = Slice(x, s, e)  y = Exp(a) }", 1);
  check_unchanged(
      "(float[3] x) => (y) <int64[1] s = {9}, int64[1] e = {-9}, int64[1] a = {0}, int64[1] t = {-1}> "
      "{ r = Slice(x, s, e, a, t)  y = Exp(r) }",
      1);  // backwards
}

TEST_CASE("a Cast before Shape is not looked at") {
  check_optimized("(float[N] x) => (y) { c = Cast<to = 7>(x)  s = Shape(c)  y = Neg(s) }", 1,
                  "s = Shape (x)\ny = Neg (s)");
  check_optimized("(float[N] x) => (s, c) { c = Cast<to = 7>(x)  s = Shape(c) }", 1,
                  "c = Cast <to = 7> (x)\ns = Shape (x)");
}

TEST_CASE("an Unsqueeze of an initializer goes into its shape") {
  check_optimized(
      "(float[2,3] x) => (y) <float[3] w = {1,2,3}, int64[1] a = {0}> { u = Unsqueeze(w, a)  y = Add(x, u) }", 1,
      "y = Add (x, u)");
  check_optimized("(float[2,3] x) => (y) <float[3] w = {1,2,3}> { u = Unsqueeze<axes = [0]>(w)  y = Add(x, u) }", 1,
                  "y = Add (x, u)", 11);
  check_unchanged(
      "(float[2,3] x, float[3] w = {1,2,3}) => (y) <int64[1] a = {0}> { u = Unsqueeze(w, a)  y = Add(x, u) }",
      1);  // can be fed
  check_unchanged(
      "(float[2,3] x) => (y, u) <float[3] w = {1,2,3}, int64[1] a = {0}> { u = Unsqueeze(w, a)  "
      "y = Add(x, u) }",
      1);  // is an output
}
