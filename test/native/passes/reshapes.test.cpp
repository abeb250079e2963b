#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kIndices =
    "<int64 i0 = {0}, int64 i1 = {1}, int64[1] a = {0}, int64[1] four = {4}, int64[1] rest = {-1}> ";
std::string reshape(const char* inputs, const char* last) {
  return cat("(", inputs, ") => (y) ", kIndices,
             "{ s = Shape(x)  g = Gather<axis = 0>(s, i0)  b = Unsqueeze(g, a)  h = Gather<axis = 0>(s, i1)  "
             "c = Unsqueeze(h, a)  t = Concat<axis = 0>(b, c, four, ",
             last, ")  r = Reshape(x, t)  y = Exp(r) }");
}
}  // namespace

TEST_CASE("dims that are the input's own need not be computed") {
  check_optimized(reshape("float[N,S,12] x", "rest"), 1, "r = Reshape (x, r_shape)\ny = Exp (r)");
  graph::Model model = parse(reshape("float[N,S,12] x", "rest"));
  optimize(model, 1);
  const auto id = model.graph->find_value("r_shape");
  REQUIRE(id != graph::kNoValue);
  CHECK(tensor::to_int64_vector(model.graph->value(id).constant.tensor()) == std::vector<std::int64_t>{0, 0, 4, -1});
}

TEST_CASE("one dim may be a product of others") {
  check_optimized(
      "(float[N,S,12] x) => (y) <int64 i0 = {0}, int64 i1 = {1}, int64[1] a = {0}, int64[1] d = {12}> { s = Shape(x)  "
      "g = Gather<axis = 0>(s, i0)  h = Gather<axis = 0>(s, i1)  m = Mul(g, h)  u = Unsqueeze(m, a)  "
      "t = Concat<axis = 0>(u, d)  r = Reshape(x, t)  y = Exp(r) }",
      1, "r = Reshape (x, r_shape)\ny = Exp (r)");
}

TEST_CASE("dims that are computed stay so where two of them are not the input's, or may differ") {
  check_unchanged("(float[N,S,3] x, float[A,B,C] z) => (y) { s = Shape(z)  r = Reshape(x, s)  y = Exp(r) }", 1);
  check_unchanged("(float[2,3] x, int64[1] s) => (y) { r = Reshape(x, s)  y = Exp(r) }", 1);
  check_unchanged(
      "(float[N,2,3] x, float[N] z) => (y) <int64[1] k = {-1}> { s = Shape(z)  t = Concat<axis = 0>(s, k)  r = "
      "Reshape(x, t)  y = Exp(r) }",
      1);
}

TEST_CASE("views in a row become one") {
  check_optimized(
      "(float[N,4] x) => (y) <int64[1] a = {1}, int64[1] b = {0}> { p = Unsqueeze(x, a)  q = Unsqueeze(p, b)  y = "
      "Exp(q) }",
      1, "q = Reshape (x, q_shape)\ny = Exp (q)");
  check_optimized(
      "(float[N,1,4] x) => (y) <int64[1] a = {1}, int64[1] b = {2}> { p = Squeeze(x, a)  q = Unsqueeze(p, b)  y = "
      "Exp(q) }",
      1, "q = Reshape (x, q_shape)\ny = Exp (q)");
  check_unchanged(
      "(float[N,M] x) => (y) <int64[1] a = {0}> { p = Unsqueeze(x, a)  q = Unsqueeze(p, a)  y = "
      "Exp(q) }",
      1);
}
