#include "graph/captures.h"

#include <doctest/doctest.h>

#include "graph/text.h"
#include "graph/verifier.h"

using namespace infernode;
using namespace infernode::graph;

namespace {
// Both branches read w, one of them in a branch of its own; only one reads v.
Model branches() {
  return parse_model(
      "g (c, x) => (y) <float[2] w = {1, 2}, float v = {3}> { y = If <t = h () => (p) { p = If <t = i () => (q) { q = "
      "Add(x, w) }, e = j () => (r) { r = Neg(x) }> (c) }, e = k () => (s) { o = Add(x, w)  s = Mul(o, v) }> (c) }");
}
Graph& body(Graph& graph, const char* name) { return *graph.node(0).attributes.get_graph(name); }
const ValueInfo& input(const Graph& graph, std::size_t node, std::size_t i) {
  return graph.value(graph.node(static_cast<NodeId>(node)).inputs[i]);
}
}  // namespace

TEST_CASE("constants read from outside become constants of the bodies, at any depth, of the same memory") {
  const Model m = branches();
  adopt_constants(*m.graph);
  verify(*m.graph);
  Graph &inner = body(body(*m.graph, "t"), "t"), &other = body(*m.graph, "e");
  const void* memory = m.graph->value(m.graph->find_value("w")).constant.tensor().raw();
  REQUIRE(input(inner, 0, 1).is_constant());
  CHECK(input(inner, 0, 1).constant.tensor().raw() == memory);
  REQUIRE(input(other, 0, 1).is_constant());
  CHECK(input(other, 0, 1).constant.tensor().raw() == memory);
  CHECK(inner.captures().size() == 1);  // x
}

TEST_CASE("a constant that can be fed is not adopted") {
  const Model m =
      parse_model("g (c, x, float w) => (y) <float w = {1}> { y = If <t = h () => (p) { p = Add(x, w) }> (c) }");
  adopt_constants(*m.graph);
  CHECK(body(*m.graph, "t").captures().size() == 2);
}

TEST_CASE("constants of several bodies that are the same memory stand once in the outermost graph") {
  const Model m = branches();
  adopt_constants(*m.graph);
  m.graph->compact();
  CHECK(m.graph->find_value("w") == kNoValue);  // nobody reads it there any more
  capture_constants(*m.graph);
  verify(*m.graph);
  Graph &inner = body(body(*m.graph, "t"), "t"), &other = body(*m.graph, "e");
  CHECK_FALSE(input(inner, 0, 1).is_constant());
  CHECK_FALSE(input(other, 0, 1).is_constant());
  CHECK(input(other, 1, 1).is_constant());  // v is read in one place
  int constants = 0;
  for (const ValueInfo& value : m.graph->values()) constants += value.is_constant() ? 1 : 0;
  CHECK(constants == 1);
  adopt_constants(*m.graph);
  CHECK(input(inner, 0, 1).constant.tensor().data<float>()[1] == 2);
}
