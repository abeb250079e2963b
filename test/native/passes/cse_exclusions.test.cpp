// Nodes that draw are as many draws as there are nodes.
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("equal nodes that draw stay two") {
  for (const char* op : {"RandomNormalLike(x)", "RandomUniformLike(x)", "Bernoulli(x)", "Multinomial<dtype = 6>(x)",
                         "Dropout(x, r, on)", "RandomNormalLike<seed = 1.0>(x)"}) {
    const std::string text =
        cat("(float[2,3] x) => (y) <float r = {0.5}, bool on = {1}> { a = ", op, "  b = ", op, "  y = Sub(a, b) }");
    CAPTURE(text);
    graph::Model model = parse(text);
    CHECK(optimize(model, 1).empty());
  }
}

TEST_CASE("nodes without inputs that draw stay two") {
  graph::Model model = parse(
      "(float[2] x) => (y) { a = RandomNormal<shape = [2]>()  b = RandomNormal<shape = [2]>()  c = Sub(a, b)  "
      "y = Add(x, c) }");
  CHECK(optimize(model, 1).empty());
}

TEST_CASE("Dropout at inference does not draw") {
  check_optimized("(float[2] x) => (y) <float r = {0.5}> { a = Dropout(x, r)  b = Dropout(x, r)  y = Sub(a, b) }", 1,
                  "y = Sub (x, x)");
}
