#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kWeights =
    "int8[4,3] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, int8 wz = {2}, float ws = {0.25}, float[3] c = {0.5,-1,2}, "
    "float root = {1.4142135}, float one = {1}, float half = {0.5}";

/// A product of what is quantized by its own range, as onnxruntime's dynamic quantization writes it.
std::string product(const std::string& inputs, const std::string& rest, const std::string& results = "y",
                    const std::string& weights = kWeights) {
  return "(float[N,S,4] x" + inputs + ") => (" + results + ") <" + weights +
         "> { q, xs, xz = DynamicQuantizeLinear(x)  i = MatMulInteger(q, w, xz, wz)  f = Cast<to = 1>(i)  "
         "s = Mul(xs, ws)  t = Mul(f, s)  " +
         rest + " }";
}
/// Inputs of the fused node before the bias.
constexpr const char* kDynamic = "(x, w, \"\", ws, \"\", wz";
}  // namespace

TEST_CASE("dynamic quantization, scale, bias, residual and activation go into an integer product") {
  const auto fused = [](const std::string& rest) {
    return cat("y = infernode.FusedMatMulInteger ", rest.starts_with('<') ? rest : cat(kDynamic, rest, ")"));
  };
  check_optimized(product("", "y = Identity(t)"), 2, fused(""));
  check_optimized(product("", "y = Add(c, t)"), 2, fused(", c"));
  check_optimized(product(", float[N,S,3] r", "u = Add(t, c)  y = Add(r, u)"), 2, fused(", c, r"));
  check_optimized(product(", float[N,S,3] r", "y = Add(r, t)"), 2, fused(", \"\", r"));
  check_optimized(
      product("", "u = Add(c, t)  d = Div(u, root)  e = Erf(d)  v = Add(e, one)  o = Mul(u, v)  y = Mul(o, half)"), 2,
      fused(cat("<activation = \"Gelu\"> ", kDynamic, ", c)")));
  check_optimized(product("", "y = Relu(t)"), 2, fused(cat("<activation = \"Relu\"> ", kDynamic, ")")));
}

TEST_CASE("codes that several products read stay") {
  check_optimized(product("", "y = Add(t, c)  j = MatMulInteger(q, w, xz)  g = Cast<to = 1>(j)  z = Mul(g, s)", "y, z"),
                  2,
                  "q, xs, xz = DynamicQuantizeLinear (x)\n"
                  "s = Mul (xs, ws)\n"
                  "z = infernode.FusedMatMulInteger (q, w, \"\", s, xz)\n"
                  "y = infernode.FusedMatMulInteger (q, w, \"\", s, xz, wz, c)");
}

TEST_CASE("scales and zero points by column") {
  const std::string columns =
      "uint8[4,3] w = {1,2,3,4,5,6,7,8,9,251,252,253}, uint8[3] wz = {2, 3, 4}, float[3] ws = {0.25, 0.5, 2}";
  check_optimized(product("", "y = Identity(t)", "y", columns), 2,
                  cat("y = infernode.FusedMatMulInteger ", kDynamic, ")"));
}

TEST_CASE("what does not fit the product's end stays behind it") {
  const auto keeps = [](const std::string& text, const char* what) {
    CAPTURE(text);
    const graph::Model before = parse(text);
    graph::Model after = parse(text);
    optimize(after, 2);
    CHECK(nodes(*after.graph).find(what) != std::string::npos);
    const auto inputs = feeds(*before.graph, {{"N", 2}, {"S", 5}});
    check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs));
  };
  keeps(product(", float[N,S,1] r", "y = Add(t, r)"), "Add (");
  keeps(product(", float[N,S,3] r", "u = Add(t, r)  y = Add(u, c)"), "Add (");
  keeps(product("", "u = Relu(t)  y = Add(u, c)"), "Add (");
  // A scale for each row.
  keeps(
      "(float[2,4] x, float[2,1] k) => (y) <int8[4,3] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}> { "
      "q, xs, xz = DynamicQuantizeLinear(x)  i = MatMulInteger(q, w, xz)  f = Cast<to = 1>(i)  y = Mul(f, k) }",
      "MatMulInteger (q");
  // Sums that something else reads.
  keeps(
      "(float[2,4] x) => (y, i) <int8[4,3] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, float k = {2}> { "
      "q, xs, xz = DynamicQuantizeLinear(x)  i = MatMulInteger(q, w, xz)  f = Cast<to = 1>(i)  y = Mul(f, k) }",
      "MatMulInteger (q");
}
