// Products of one value become one.

#include "providers/cuda/merge_products.h"

#include <algorithm>

#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("merged products give what they gave apart, however many values the graph has") {
  // Merged biases so large that they overwrite what a table of values that has grown leaves behind.
  constexpr int kLayers = 40, kColumns = 512;
  for (int others = 0; others < 5; ++others) {
    CAPTURE(others);
    std::string text =
        cat("(float[2,4] x0) => (y", kLayers, ") <", weight("b", {kColumns}, 3), ", ", weight("c", {kColumns}, 4), ", ",
            weight("w", {4, kColumns}, 1), ", ", weight("v", {4, kColumns}, 2), ", float[1] y0 = {0}");
    for (int i = 0; i < others; ++i) text += cat(", float[1] o", i, " = {0}");
    text += "> { ";
    for (int i = 0; i < kLayers; ++i) {
      text +=
          cat("p", i, " = infernode.FusedMatMul(x", i, ", w, b)  q", i, " = infernode.FusedMatMul(x", i, ", v, c)  s",
              i, " = Mul(p", i, ", q", i, ")  y", i + 1, " = Add(y", i, ", s", i, ")  x", i + 1, " = Tanh(x", i, ")  ");
    }
    graph::Model model = parse(text + "}");
    const std::vector<Value> inputs{numbers({2, 4})};
    const std::vector<Value> expected = evaluate(*model.graph, inputs);
    CHECK(cuda::merge_products(*model.graph));
    const auto order = model.graph->topological_order();
    CHECK(std::count_if(order.begin(), order.end(),
                        [&](graph::NodeId id) { return model.graph->node(id).op_type == "FusedMatMul"; }) == kLayers);
    check_same(evaluate(*model.graph, inputs), expected);
  }
}

TEST_CASE("products with a bias and without one stay apart") {
  graph::Model model = parse(cat("(float[2,4] x) => (p, q, r) <", weight("w", {4, 4}, 1), ", ", weight("v", {4, 3}, 2),
                                 ", ", weight("b", {4}, 3),
                                 "> { p = infernode.FusedMatMul(x, w, b)  q = infernode.FusedMatMul(x, w, )  "
                                 "r = MatMul(x, v) }"));
  const std::vector<Value> inputs{numbers({2, 4})};
  const std::vector<Value> expected = evaluate(*model.graph, inputs);
  CHECK(cuda::merge_products(*model.graph));
  check_same(evaluate(*model.graph, inputs), expected);
}
