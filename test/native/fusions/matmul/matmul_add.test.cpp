#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("MatMul and Add become Gemm where both are matrices") {
  check_optimized(
      "(float[M,4] a) => (y) <float[4,2] b = {1,2,3,4,5,6,7,8}, float[2] c = {9, 10}>"
      "{ t = MatMul(a, b)  y = Add(t, c) }",
      1, "y = Gemm (a, b, c)");
  check_optimized("(float[M,4] a, float[4,2] b, float[M,2] c) => (y) { t = MatMul(a, b)  y = Add(c, t) }", 1,
                  "y = Gemm (a, b, c)");
  check_optimized("(float[M,4] a, float[4,2] b) => (y) <float c = {1}> { t = MatMul(a, b)  y = Add(c, t) }", 1,
                  "y = Gemm (a, b, c)");
}

TEST_CASE("MatMul and Add stay apart") {
  SUBCASE("batches") {
    check_unchanged("(float[N,3,4] a, float[4,2] b, float[2] c) => (y) { t = MatMul(a, b)  y = Add(t, c) }", 1);
  }
  SUBCASE("the sum has more rows than the product") {
    check_unchanged("(float[1,4] a, float[4,2] b, float[5,2] c) => (y) { t = MatMul(a, b)  y = Add(t, c) }", 1);
  }
  SUBCASE("dims that may differ") {
    check_unchanged("(float[M,4] a, float[4,2] b, float[K,2] c) => (y) { t = MatMul(a, b)  y = Add(t, c) }", 1);
  }
  SUBCASE("the product is an output") {
    check_unchanged("(float[3,4] a, float[4,2] b, float[2] c) => (y, t) { t = MatMul(a, b)  y = Add(t, c) }", 1);
  }
  SUBCASE("the product is read twice by the sum") {
    check_unchanged("(float[3,4] a, float[4,2] b) => (y) { t = MatMul(a, b)  y = Add(t, t) }", 1);
  }
  SUBCASE("a subgraph reads the product") {
    check_unchanged(
        "(float[3,4] a, float[4,2] b, float[2] c, bool i) => (y, z) { t = MatMul(a, b)  y = Add(t, c) "
        "z = If<then_branch = p () => (u) { u = Neg(t) }, else_branch = q () => (v) { v = Abs(t) }>(i) }",
        1);
  }
  SUBCASE("integers") {
    check_unchanged("(int32[3,4] a, int32[4,2] b, int32[2] c) => (y) { t = MatMul(a, b)  y = Add(t, c) }", 1);
  }
  SUBCASE("before Gemm took numpy's broadcasting") {
    graph::Model model =
        parse("(float[3,4] a, float[4,2] b, float[3,2] c) => (y) { t = MatMul(a, b)  y = Add(t, c) }", 6);
    CHECK(optimize(model, 1).empty());
  }
  SUBCASE("disabled by name") {
    graph::Model model = parse("(float[3,4] a, float[4,2] b, float[2] c) => (y) { t = MatMul(a, b)  y = Add(t, c) }");
    CHECK(optimize(model, 1, {"MatMulAddFusion"}).empty());
  }
}

TEST_CASE("fusions fire in subgraphs") {
  check_optimized(
      "(bool i, float[3,4] a, float[4,2] b, float[2] c) => (y) {"
      "y = If<then_branch = p () => (u) { t = MatMul(a, b)  u = Add(t, c) },"
      "       else_branch = q () => (v) { v = MatMul(a, b) }>(i) }",
      1,
      "y = If <else_branch = q () => (float[3,2] v)\n{\nv = MatMul (a, b)\n}, then_branch = p () => (float[3,2] u)\n{\n"
      "u = Gemm (a, b, c)\n}> (i)");
}
