#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kConstants =
    "<float root = {1.4142135}, float inverse = {0.70710678}, float one = {1}, float half = {0.5}, float three = {3},"
    " float cubic = {0.044715}, float scale = {0.7978846}, float[1] other = {0.6}>";
std::string over(const std::string& body) { return cat("(float[N,5] x) => (y) ", kConstants, "{ ", body, " }"); }
}  // namespace

TEST_CASE("the exact Gelu, however its factors are multiplied") {
  for (const char* root : {"d = Div(x, root)", "d = Mul(inverse, x)"}) {
    for (const char* product :
         {"u = Mul(x, s)  y = Mul(u, half)", "u = Mul(half, x)  y = Mul(u, s)", "u = Mul(s, half)  y = Mul(x, u)"}) {
      check_optimized(over(std::string(root) + "  e = Erf(d)  s = Add(e, one)  " + product), 2,
                      "y = com.microsoft.Gelu (x)");
    }
  }
}

TEST_CASE("the approximation of Gelu by tanh") {
  const std::string end = "  d = Mul(a, scale)  e = Tanh(d)  s = Add(e, one)  u = Mul(half, x)  y = Mul(u, s)";
  check_optimized(over("p = Pow(x, three)  q = Mul(p, cubic)  a = Add(x, q)" + end), 2,
                  "y = com.microsoft.FastGelu (x)");
  check_optimized(over("v = Mul(x, x)  p = Mul(x, v)  q = Mul(p, cubic)  a = Add(x, q)" + end), 2,
                  "y = com.microsoft.FastGelu (x)");
  check_optimized(over("v = Mul(cubic, x)  p = Mul(x, v)  q = Mul(x, p)  a = Add(x, q)" + end), 2,
                  "y = com.microsoft.FastGelu (x)");
  check_optimized(over("v = Mul(x, x)  q = Mul(v, cubic)  a = Add(q, one)  r = Mul(x, scale)  d = Mul(r, a)  "
                       "e = Tanh(d)  s = Add(one, e)  u = Mul(half, x)  y = Mul(u, s)"),
                  2, "y = com.microsoft.FastGelu (x)");
}

TEST_CASE("what only looks like Gelu stays") {
  check_unchanged(over("d = Div(x, three)  e = Erf(d)  s = Add(e, one)  u = Mul(x, s)  y = Mul(u, half)"), 2);
  check_unchanged(over("d = Div(x, root)  e = Erf(d)  s = Add(e, one)  u = Mul(x, s)  y = Mul(u, other)"), 2);
  check_unchanged(over("d = Div(x, root)  e = Erf(d)  s = Add(e, half)  u = Mul(x, s)  y = Mul(u, half)"), 2);
  check_unchanged(
      "(float[5] x, float[5] z) => (y) <float root = {1.4142135}, float one = {1}, float half = {0.5}>"
      "{ d = Div(x, root)  e = Erf(d)  s = Add(e, one)  u = Mul(z, s)  y = Mul(u, half) }",
      2);
  check_unchanged(
      "(float[5] x) => (y, e) <float root = {1.4142135}, float one = {1}, float half = {0.5}>"
      "{ d = Div(x, root)  e = Erf(d)  s = Add(e, one)  u = Mul(x, s)  y = Mul(u, half) }",
      2);
  check_unchanged(
      "(double[5] x) => (y) <double root = {1.4142135}, double one = {1}, double half = {0.5}>"
      "{ d = Div(x, root)  e = Erf(d)  s = Add(e, one)  u = Mul(x, s)  y = Mul(u, half) }",
      2);
  check_unchanged(
      "(float[5] x, float root = {1.4142135}) => (y) <float one = {1}, float half = {0.5}>"
      "{ d = Div(x, root)  e = Erf(d)  s = Add(e, one)  u = Mul(x, s)  y = Mul(u, half) }",
      2);
  // A constant of more dims gives a result of more dims.
  check_unchanged(
      "(float[5] x) => (y) <float root = {1.4142135}, float one = {1}, float[1,1] half = {0.5}>"
      "{ d = Div(x, root)  e = Erf(d)  s = Add(e, one)  u = Mul(x, s)  y = Mul(u, half) }",
      2);
}

TEST_CASE("level basic keeps to the standard's operators") {
  const std::string parts = over("d = Div(x, root)  e = Erf(d)  s = Add(e, one)  u = Mul(x, s)  y = Mul(u, half)");
  check_optimized(parts, 1, "y = Gelu (x)", 20);
  check_optimized(parts, 2, "y = Gelu (x)", 20);
  check_unchanged(parts, 1, 19);
  check_unchanged(over("d = Div(x, root)  e = Erf(d)  s = Add(e, one)  u = Mul(x, s)  y = Mul(u, half)"), 1);
}
