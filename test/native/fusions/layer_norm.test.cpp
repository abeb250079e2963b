#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kHead =
    "(float[N,3,4] x) => (y) <float two = {2}, float eps = {0.001}, float one = {1}, float[4] g = {1, 2, 0.5, -1}, "
    "float[4] b = {3, 0, 1, 2}, float[3,4] wide = {1,2,3,4,5,6,7,8,9,10,11,12}, int64[1] last = {-1}, int64[1] axis2 = "
    "{2}> { ";
std::string norm(const std::string& mean, const std::string& square, const std::string& variance,
                 const std::string& end = "m = Mul(n, g)  y = Add(m, b)") {
  return kHead + ("u = " + mean) + "  d = Sub(x, u)  p = " + square + "  v = " + variance +
         "  e = Add(v, eps)  s = Sqrt(e)  n = Div(d, s)  " + end + " }";
}
}  // namespace

TEST_CASE("layer normalization from its parts") {
  const char* fused = "y = LayerNormalization <axis = -1, epsilon = 0.001> (x, g, b)";
  check_optimized(norm("ReduceMean<axes = [-1]>(x)", "Pow(d, two)", "ReduceMean<axes = [2]>(p)"), 2, fused);
  check_optimized(norm("ReduceMean<axes = [-1]>(x)", "Mul(d, d)", "ReduceMean<axes = [-1]>(p)"), 2, fused);
  check_optimized(
      norm("ReduceMean<axes = [-1]>(x)", "Mul(d, d)", "ReduceMean<axes = [-1]>(p)", "m = Mul(g, n)  y = Add(b, m)"), 2,
      fused, 13);
  check_optimized(norm("ReduceMean(x, last)", "Pow(d, two)", "ReduceMean(p, axis2)"), 2, fused, 18);
  check_optimized(norm("ReduceMean<axes = [1, 2]>(x)", "Pow(d, two)", "ReduceMean<axes = [-1, -2]>(p)",
                       "m = Mul(n, wide)  y = Add(m, wide)"),
                  2, "y = LayerNormalization <axis = -2, epsilon = 0.001> (x, wide, wide)");
}

TEST_CASE("level basic has layer normalization from the version on that standardizes it") {
  const std::string parts = norm("ReduceMean<axes = [-1]>(x)", "Mul(d, d)", "ReduceMean<axes = [-1]>(p)");
  check_optimized(parts, 1, "y = LayerNormalization <axis = -1, epsilon = 0.001> (x, g, b)", 17);
  check_unchanged(parts, 1, 16);
}

TEST_CASE("layer normalization in float32 inside a float16 model") {
  graph::Model model = parse(
      "(float16[2,4] x) => (y) <float two = {2}, float eps = {0.001}, float16[4] g = {1,2,3,4}, float16[4] b = "
      "{1,0,1,0}>"
      "{ w = Cast<to = 1>(x)  u = ReduceMean<axes = [-1]>(w)  d = Sub(w, u)  p = Pow(d, two)  "
      "v = ReduceMean<axes = [-1]>(p)  e = Add(v, eps)  s = Sqrt(e)  n = Div(d, s)  h = Cast<to = 10>(n)  "
      "m = Mul(h, g)  y = Add(m, b) }");
  optimize(model, 2);
  CHECK(nodes(*model.graph) == "y = LayerNormalization <axis = -1, epsilon = 0.001> (x, g, b)");
}

TEST_CASE("what is no layer normalization stays") {
  const std::string mean = "ReduceMean<axes = [-1]>(x)", variance = "ReduceMean<axes = [-1]>(p)";
  check_unchanged(norm("ReduceMean<axes = [1]>(x)", "Pow(d, two)", "ReduceMean<axes = [1]>(p)"), 2);
  check_unchanged(norm(mean, "Pow(d, two)", "ReduceMean<axes = [1, 2]>(p)"), 2);
  check_unchanged(norm(mean, "Pow(d, one)", variance), 2);
  check_unchanged(norm(mean, "Mul(d, x)", variance), 2);
  check_unchanged(norm(mean, "Pow(d, two)", variance, "m = Mul(n, wide)  y = Add(m, b)"), 2);
  check_unchanged(norm("ReduceMean(x)", "Pow(d, two)", "ReduceMean(p)"), 2);
  check_unchanged(
      "(float[N,4] x, float[4] g, float[4] b, float eps) => (y) <float two = {2}> { "
      "u = ReduceMean<axes = [-1]>(x)  d = Sub(x, u)  p = Pow(d, two)  v = ReduceMean<axes = [-1]>(p)  "
      "e = Add(v, eps)  s = Sqrt(e)  n = Div(d, s)  m = Mul(n, g)  y = Add(m, b) }",
      2);
}

TEST_CASE("normalization by the root of the mean square from its parts") {
  const char* fused = "y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.001> (x, g)";
  const std::string begin =
      cat(kHead, "p = Pow(x, two)  v = ReduceMean<axes = [-1]>(p)  e = Add(v, eps)  s = Sqrt(e)  ");
  check_optimized(begin + "n = Div(x, s)  y = Mul(g, n) }", 2, fused);
  check_optimized(begin + "r = Div(one, s)  n = Mul(x, r)  y = Mul(n, g) }", 2, fused);
  check_optimized(begin + "r = Reciprocal(s)  n = Mul(r, x)  y = Mul(g, n) }", 2, fused);
  check_optimized(cat(kHead,
                      "p = Mul(x, x)  v = ReduceMean(p, last)  e = Add(v, eps)  s = Sqrt(e)  "
                      "n = Div(x, s)  y = Mul(g, n) }"),
                  2, fused, 18);
}

TEST_CASE("what is no such normalization stays") {
  const std::string begin =
      cat(kHead, "p = Pow(x, two)  v = ReduceMean<axes = [-1]>(p)  e = Add(v, eps)  s = Sqrt(e)  ");
  check_unchanged(begin + "r = Div(two, s)  n = Mul(x, r)  y = Mul(n, g) }", 2);
  check_unchanged(begin + "n = Div(g, s)  y = Mul(g, n) }", 2);
  check_unchanged(begin + "n = Div(x, s)  y = Mul(wide, n) }", 2);
}
