#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string product(const std::string& inputs, const std::string& rest) {
  return "(float[N,S,4] x" + inputs +
         ") => (y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, float[3] c = {0.5,-1,2}, "
         "float root = {1.4142135}, float one = {1}, float half = {0.5}> { t = MatMul(x, w)  " +
         rest + " }";
}
}  // namespace

TEST_CASE("bias, residual and activation go into a product of any rank") {
  check_optimized(product("", "y = Add(c, t)"), 2, "y = infernode.FusedMatMul (x, w, c)");
  check_optimized(product(", float[N,S,3] r", "s = Add(c, t)  y = Add(s, r)"), 2,
                  "y = infernode.FusedMatMul (x, w, c, r)");
  check_optimized(product(", float[N,S,3] r", "s = Add(r, t)  y = Add(s, c)"), 2,
                  "y = infernode.FusedMatMul (x, w, c, r)");
  check_optimized(product(", float[N,S,3] r", "y = Add(t, r)"), 2, "y = infernode.FusedMatMul (x, w, \"\", r)");
  check_optimized(
      product("", "u = Add(c, t)  d = Div(u, root)  e = Erf(d)  s = Add(e, one)  v = Mul(u, s)  y = Mul(v, half)"), 2,
      "y = infernode.FusedMatMul <activation = \"Gelu\"> (x, w, c)");
  check_optimized(product("", "s = Sigmoid(t)  y = Mul(t, s)"), 2,
                  "y = infernode.FusedMatMul <activation = \"Silu\"> (x, w)");
  check_optimized(product("", "y = Relu(t)"), 2, "y = infernode.FusedMatMul <activation = \"Relu\"> (x, w)");
}

TEST_CASE("an activation goes into Gemm") {
  const std::string head = "(float[M,4] x) => (y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, float[3] c = {1,2,3}> ";
  check_optimized(head + "{ t = Gemm<transB = 1, alpha = 2.0>(x, w, c)  y = Relu(t) }", 2,
                  "y = infernode.FusedMatMul <activation = \"Relu\", alpha = 2.0, transB = 1> (x, w, c)");
  check_unchanged(head + "{ t = Gemm<transB = 1, beta = 2.0>(x, w, c)  y = Relu(t) }", 2);
  check_unchanged("(float[4,2] x, float[4,3] w) => (y) { t = Gemm<transA = 1>(x, w)  y = Relu(t) }", 2);
  check_unchanged("(float[2,4] x, float[4,3] w, float[2,3] c) => (y) { t = Gemm(x, w, c)  y = Relu(t) }", 2);
}

TEST_CASE("what cannot go into a product stays") {
  check_unchanged(product("", "s = Add(c, t)  y = Mul(s, t)"), 2);
  check_unchanged(product(", float[N,1,3] r", "y = Add(t, r)"), 2);
  check_unchanged(product(", float[M,S,3] r", "y = Add(t, r)"), 2);
  check_unchanged(product(", float[1,1,N,S,3] r", "y = Add(t, r)"), 2);
  check_unchanged("(double[2,2,2] x, double[2,2] w, double[2] c) => (y) { t = MatMul(x, w)  y = Add(t, c) }", 2);
  check_unchanged("(float[2] x, float[2,2] w, float[2] c) => (y) { t = MatMul(x, w)  y = Add(t, c) }", 2);
  check_unchanged("(float[2,3,4] x, float[2,4,3] w, float[2,3,3] r) => (y) { t = MatMul(x, w)  y = Add(t, r) }", 2);
}

TEST_CASE("a bias over batches of two operands") {
  check_optimized("(float[2,3,4] x, float[2,4,5] w, float[5] c) => (y) { t = MatMul(x, w)  y = Add(t, c) }", 2,
                  "y = infernode.FusedMatMul (x, w, c)");
}

TEST_CASE("a factor of the product or of an operand becomes alpha") {
  const std::string head = "(float[2,3,4] x, float[2,4,5] w) => (y) <float k = {0.125}, float[1] d = {8}> ";
  const char* fused = "y = infernode.FusedMatMul <alpha = 0.125> (x, w)";
  check_optimized(head + "{ t = MatMul(x, w)  y = Mul(t, k) }", 2, fused);
  check_optimized(head + "{ t = MatMul(x, w)  y = Div(t, d) }", 2, fused);
  check_optimized(head + "{ a = Mul(k, x)  y = MatMul(a, w) }", 2, fused);
  check_optimized(head + "{ b = Div(w, d)  y = MatMul(x, b) }", 2, fused);
  check_optimized(head + "{ a = Mul(k, x)  b = Mul(w, k)  y = MatMul(a, b) }", 2,
                  "y = infernode.FusedMatMul <alpha = 0.015625> (x, w)");
}

TEST_CASE("a factor of a product and its constant bias scales both") {
  check_optimized(product("", "s = Add(t, c)  y = Mul(s, half)"), 2,
                  "y = infernode.FusedMatMul <alpha = 0.5> (x, w, c_scaled)");
}

TEST_CASE("other factors stay") {
  check_unchanged("(float[2,3,4] x, float[2,4,5] w, float k) => (y) { t = MatMul(x, w)  y = Mul(t, k) }", 2);
  check_unchanged("(float[3,4] x, float[4,5] w) => (y) <float[1,1,1] k = {2}> { t = MatMul(x, w)  y = Mul(t, k) }", 2);
  check_unchanged("(float[3,4] x, float[2,4,5] w) => (y) <float[1,1,1] k = {2}> { a = Mul(x, k)  y = MatMul(a, w) }",
                  2);
  check_unchanged("(float[2,3,4] x, float[2,4,5] w) => (y) <float k = {2}> { t = MatMul(x, w)  y = Div(k, t) }", 2);
  check_unchanged("(float[2,3,4] x, float[4,5] w, float[1] k) => (y) { t = MatMul(x, w)  y = Mul(t, k) }", 2);
  check_optimized(
      "(float[2,3,4] x, float[4,5] w, float[5] c) => (y) <float k = {2}> { t = MatMul(x, w)  s = Add(t, c)  "
      "y = Mul(s, k) }",
      2, "s = infernode.FusedMatMul (x, w, c)\ny = Mul (s, k)");
}

TEST_CASE("a transposition of the second operand goes into the product") {
  check_optimized("(float[2,3,4] q, float[2,5,4] k) => (y) { t = Transpose<perm = [0, 2, 1]>(k)  y = MatMul(q, t) }", 2,
                  "y = infernode.FusedMatMul <transB = 1> (q, k)");
  check_optimized(
      "(float[2,6,3,4] q, float[2,5,6,4] k) => (y) { t = Transpose<perm = [0, 2, 3, 1]>(k)  y = MatMul(q, t) }", 2,
      "t_rows = Transpose <perm = [0, 2, 1, 3]> (k)\ny = infernode.FusedMatMul <transB = 1> (q, t_rows)");
}

TEST_CASE("other transpositions stay") {
  check_unchanged("(float[2,3,4] q, float[4,2,5] k) => (y) { t = Transpose<perm = [1, 0, 2]>(k)  y = MatMul(q, t) }",
                  2);
  check_unchanged("(float[2,3,4] q, float[2,5,4] k) => (y, t) { t = Transpose<perm = [0, 2, 1]>(k)  y = MatMul(q, t) }",
                  2);
}

TEST_CASE("rows flattened for Gemm and unflattened after it") {
  const std::string head =
      "(float[N,S,4] x) => (y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, float[3] c = {1,2,3}, "
      "int64[2] flat = {-1, 4}, int64[1] three = {3}, int64 i0 = {0}, int64 i1 = {1}, int64[1] a0 = {0}> "
      "{ a = Reshape(x, flat)  t = Gemm(a, w, c)  sh = Shape(x)  g0 = Gather(sh, i0)  g1 = Gather(sh, i1)  "
      "u0 = Unsqueeze(g0, a0)  u1 = Unsqueeze(g1, a0)  d = Concat<axis = 0>(u0, u1, three)  ";
  graph::Model model = parse(head + "y = Reshape(t, d) }");
  optimize(model, 2);
  CHECK(nodes(*model.graph) == "y = infernode.FusedMatMul (x, w, c)");
  check_optimized(
      "(float[2,3,2,2] x) => (y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, int64[2] flat = {6, 4}, "
      "int64[3] back = {2, 3, 3}> { a = Reshape(x, flat)  t = Gemm(a, w)  y = Reshape(t, back) }",
      2, "a_rows = Reshape (x, a_shape)\ny = infernode.FusedMatMul (a_rows, w)");
  check_unchanged(
      "(float[2,3,4] x) => (y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, int64[2] flat = {6, 4}, "
      "int64[3] back = {3, 2, 3}> { a = Reshape(x, flat)  t = Gemm(a, w)  y = Reshape(t, back) }",
      2);
}

TEST_CASE("weights of 8 bits stay so inside a product") {
  // Folding would take constants as small as these.
  const auto check = [](std::string_view statements, std::string_view expected) {
    const std::string text = cat(
        "(float[N,4] x) => (y) <int8[4,3] q = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, float[3] c = {0.5,-1,2}, float s = {0.5}, "
        "float[3] ss = {0.5,1,2}, float[1,3] row = {0.5,1,2}, float[4,1] column = {1,2,3,4}, float[4] rows = "
        "{0.5,1,2,3}, int8 z = {3}, int8[3] zz = {1,2,3}> { ",
        statements, " }");
    CAPTURE(text);
    const graph::Model before = parse(text);
    graph::Model after = parse(text);
    optimize(after, 2, {"ConstantFolding", "MatMulAddFusion"});
    const std::string text_after = nodes(*after.graph);
    CAPTURE(text_after);
    CHECK((expected.empty() ? text_after.find("Fused") == std::string::npos
                            : text_after.find(expected) != std::string::npos));
    const std::vector<Value> inputs = feeds(*before.graph);
    check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs));
  };
  check("w = DequantizeLinear(q, s)  y = MatMul(x, w)", "y = infernode.FusedMatMul (x, q, \"\", \"\", s)");
  check("w = DequantizeLinear(q, s, z)  t = MatMul(x, w)  y = Add(t, c)",
        "y = infernode.FusedMatMul (x, q, c, \"\", s, z)");
  check("w = DequantizeLinear<axis = -1>(q, ss, zz)  y = Gemm(x, w, c)",
        "y = infernode.FusedMatMul (x, q, c, \"\", ss, zz)");
  check("f = Cast<to = 1>(q)  w = Mul(f, s)  y = MatMul(x, w)",
        "y = infernode.FusedMatMul (x, q, \"\", \"\", s_vector)");
  check("f = Cast<to = 1>(q)  w = Mul(row, f)  t = MatMul(x, w)  y = Relu(t)",
        "y = infernode.FusedMatMul <activation = \"Relu\"> (x, q, \"\", \"\", row_vector)");
  check("f = Cast<to = 1>(q)  w = Mul(f, column)  y = MatMul(x, w)", "");
  check("w = DequantizeLinear<axis = 0>(q, rows)  y = MatMul(x, w)", "");
  // Other readers get floats; the product does without them all the same.
  check("w = DequantizeLinear(q, s)  t = MatMul(x, w)  u = ReduceSum(w)  y = Add(t, u)",
        "w = DequantizeLinear (q, s)\nu = ReduceSum (w)\nt = infernode.FusedMatMul (x, q, \"\", \"\", s)\n"
        "y = Add (t, u)");
  check("w = DequantizeLinear(q, s)  t = MatMul(x, w)  n = Neg(x)  u = MatMul(n, w)  y = Sub(t, u)",
        "n = Neg (x)\nt = infernode.FusedMatMul (x, q, \"\", \"\", s)\n"
        "u = infernode.FusedMatMul (n, q, \"\", \"\", s)\ny = Sub (t, u)");
}
