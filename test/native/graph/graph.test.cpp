#include "graph/graph.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/definition.h"
#include "graph/patch.h"
#include "graph/text.h"
#include "graph/verifier.h"

using namespace infernode;
using namespace infernode::graph;
using tensor::Tensor;

namespace {
NodeId find_node(const Graph& g, std::string_view op) {
  for (size_t i = 0; i < g.node_count(); ++i)
    if (!g.node(static_cast<NodeId>(i)).removed && g.node(static_cast<NodeId>(i)).op_type == op)
      return static_cast<NodeId>(i);
  return kNoNode;
}
std::string message(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("attributes convert where that loses nothing and name what they refuse") {
  Attributes a;
  a.set("i", int64_t{3});
  a.set("f", 2.5f);
  a.set("s", std::string("x"));
  a.set("none", std::vector<int64_t>{});
  CHECK(a.get_float("i", 0) == 3.f);
  CHECK(a.get_ints("i") == std::vector<int64_t>{3});
  CHECK(a.get_strings("s") == std::vector<std::string>{"x"});
  CHECK(a.get_floats("none").empty());
  CHECK(a.get_int("missing", 7) == 7);
  CHECK(a.get_graph("missing") == nullptr);
  CHECK(contains(message([&] { (void)a.get_int("f"); }), "'f'"));
  CHECK(contains(message([&] { (void)a.get_int("gone"); }), "'gone' is missing"));
  a.set("i", int64_t{4});
  CHECK(a.get_int("i") == 4);
  CHECK(a.size() == 4);
  Attributes b;
  b.set("t", Tensor::of<float>({2}, {1, 2}));
  Attributes c;
  c.set("t", Tensor::of<float>({2}, {1, 2}));
  CHECK(b == c);
  c.set("t", Tensor::of<float>({2}, {1, 3}));
  CHECK_FALSE(b == c);
  c.erase("t");
  CHECK(c.size() == 0);
}

TEST_CASE("names are unique and found") {
  Graph g;
  const ValueId a = g.add_value("a");
  CHECK(g.find_value("a") == a);
  CHECK(g.find_value("b") == kNoValue);
  CHECK(g.unique_name("b") == "b");
  CHECK(g.unique_name("a") != "a");
  CHECK_FALSE(g.value(g.add_value("")).name.empty());
  CHECK(contains(message([&] { g.add_value("a"); }), "'a'"));
}

TEST_CASE("a replaced output keeps its name") {
  const Model m = parse_model("g (x) => (y) { [\"r\"] t = Relu(x) [\"i\"] y = Identity(t) }");
  Graph& g = *m.graph;
  GraphPatch patch(g);
  patch.replace_uses(g.find_value("y"), g.find_value("t"));
  patch.remove_node(find_node(g, "Identity"));
  patch.apply();
  g.compact();
  verify(g);
  REQUIRE(g.node_count() == 1);
  CHECK(g.value(g.outputs()[0]).name == "y");
  CHECK(g.value(g.node(0).outputs[0]).name == "y");
  CHECK(g.find_value("t") == kNoValue);
}

TEST_CASE("an output replaced by an input goes through Identity") {
  const Model m = parse_model("g (x) => (y) { t = Neg(x) y = Neg(t) }", 16);
  Graph& g = *m.graph;
  GraphPatch patch(g);
  patch.replace_uses(g.find_value("y"), g.find_value("x"));
  patch.apply();
  g.compact();
  verify(g);
  CHECK(g.value(g.outputs()[0]).name == "y");
  const Node& identity = g.node(g.value(g.outputs()[0]).producer);
  CHECK(identity.op_type == "Identity");
  CHECK(identity.opset == 16);
  CHECK(g.value(identity.inputs[0]).name == "x");
}

TEST_CASE("a fused node takes over outputs and remembers its sources") {
  const Model m = parse_model("g (x, w, b) => (y) { [\"mm\"] t = MatMul(x, w) [\"ad\"] y = Add(t, b) }");
  Graph& g = *m.graph;
  const NodeId mm = find_node(g, "MatMul"), add = find_node(g, "Add");
  GraphPatch patch(g);
  CHECK(patch.empty());
  Node gemm;
  gemm.op_type = "Gemm";
  gemm.opset = 13;
  gemm.inputs = {g.find_value("x"), g.find_value("w"), g.find_value("b")};
  gemm.outputs = {g.find_value("y")};
  const NodeId sources[] = {mm, add};
  const NodeId id = patch.add_node(std::move(gemm), sources);
  CHECK_FALSE(patch.empty());
  patch.remove_node(mm);
  patch.remove_node(add);
  patch.apply();
  verify(g);
  CHECK(g.value(g.find_value("y")).producer == id);
  CHECK(g.node(id).provenance == std::vector<std::string>{"mm", "ad"});
  CHECK(g.topological_order() == std::vector<NodeId>{id});
}

TEST_CASE("a patch keeps the consumers that it is given") {
  const Model m = parse_model(
      "g (x, c) => (y, z, w) { a = Neg(x) b = Add(a, a) d = If<then_branch = t () => (u) { u = Relu(b) }, else_branch "
      "= e "
      "() => (v) { v = Identity(a) }>(c) y = Mul(d, b) z = Exp(b) w = Identity(x) }");
  Graph& g = *m.graph;
  Consumers consumers = g.consumers();
  const auto edit = [&](auto fill) {
    GraphPatch patch(g);
    fill(patch);
    patch.apply(consumers);
    verify(g);
    CHECK(consumers == g.consumers());
  };
  edit([&](GraphPatch& patch) { patch.set_input(find_node(g, "Exp"), 0, g.find_value("a")); });
  edit([&](GraphPatch& patch) {
    Node twice;
    twice.op_type = "Twice";
    twice.opset = 13;
    twice.inputs = {g.find_value("a"), g.find_value("x")};
    twice.outputs = {patch.add_value("twice")};
    const ValueId made = twice.outputs[0];
    patch.add_node(std::move(twice));
    patch.remove_node(find_node(g, "Add"));
    patch.replace_uses(g.find_value("b"), made);
  });
  edit([&](GraphPatch& patch) { patch.replace_uses(g.find_value("z"), g.find_value("x")); });  // by an Identity
  edit([&](GraphPatch& patch) { patch.fold(g.find_value("a"), Tensor::scalar(2.0f)); });
}

TEST_CASE("an unapplied patch changes nothing that runs") {
  const Model m = parse_model("g (x) => (y) { y = Relu(x) }");
  Graph& g = *m.graph;
  {
    GraphPatch patch(g);
    Node n;
    n.op_type = "Neg";
    n.inputs = {g.find_value("x")};
    n.outputs = {patch.add_value("y")};
    CHECK(g.value(n.outputs[0]).name != "y");
    patch.add_node(std::move(n));
  }
  verify(g);
  CHECK(g.topological_order().size() == 1);
}

TEST_CASE("folding removes the producer, or its slot where others live") {
  const Model m = parse_model("g (x) => (y, b) { t = Neg(x) a, b = Split(x) y = Add(t, a) }");
  Graph& g = *m.graph;
  const ValueId t = g.find_value("t"), a = g.find_value("a");
  GraphPatch patch(g);
  patch.fold(t, Tensor::of<float>({2}, {1, 2}));
  patch.fold(a, Tensor::of<float>({1}, {3}));
  patch.apply();
  verify(g);
  CHECK(find_node(g, "Neg") == kNoNode);
  CHECK(g.value(a).has_constant());
  CHECK(g.value(t).type.to_string() == "tensor(float)");
  const Node& split = g.node(find_node(g, "Split"));
  CHECK(split.outputs[0] != a);
  CHECK(split.outputs[0] != kNoValue);
  CHECK(g.value(split.outputs[1]).name == "b");
}

TEST_CASE("replacements chain and reach captures") {
  const Model m =
      parse_model("g (c, x) => (y) { a = Identity(x) b = Identity(a) y = If <t = h () => (p) { p = Neg(b) }> (c) }");
  Graph& g = *m.graph;
  GraphPatch patch(g);
  patch.replace_uses(g.find_value("b"), g.find_value("a"));
  patch.replace_uses(g.find_value("a"), g.find_value("x"));
  for (const char* name : {"a", "b"}) patch.remove_node(g.value(g.find_value(name)).producer);
  patch.apply();
  g.compact();
  verify(g);
  CHECK(g.node_count() == 1);
  const auto captured = implicit_inputs(g.node(0));
  REQUIRE(captured.size() == 1);
  CHECK(g.value(captured[0]).name == "x");
}

TEST_CASE("set_input redirects one use only") {
  const Model m = parse_model("g (x, z) => (y) { y = Add(x, x) }");
  Graph& g = *m.graph;
  GraphPatch patch(g);
  patch.set_input(0, 1, g.find_value("z"));
  patch.apply();
  CHECK(g.node(0).inputs == std::vector<ValueId>{g.find_value("x"), g.find_value("z")});
}

TEST_CASE("compact drops what is unused, inside subgraphs too") {
  const Model m = parse_model(
      "g (c, x) => (y) <float w = {1}, float unused = {2}> { y = If <t = h () => (p) <float v = {1}> { p = Neg(x) q = "
      "Abs(w) }> (c) }");
  Graph& g = *m.graph;
  Graph& h = *g.node(0).attributes.get_graph("t");
  CHECK(h.captures().size() == 2);
  h.node(find_node(h, "Abs")).removed = true;
  g.compact();
  verify(g);
  CHECK(h.captures().size() == 1);
  CHECK(h.node_count() == 1);
  CHECK(g.find_value("w") == kNoValue);
  CHECK(g.find_value("unused") == kNoValue);
  CHECK(g.value(h.captures()[0].outer).name == "x");
}

TEST_CASE("clones are independent down to subgraphs") {
  const Model m = parse_model("g (c, x) => (y) { y = If <t = h () => (p) { p = Neg(x) }> (c) }");
  const auto copy = m.graph->clone();
  copy->node(0).attributes.get_graph("t")->node(0).op_type = "Abs";
  CHECK(m.graph->node(0).attributes.get_graph("t")->node(0).op_type == "Neg");
  CHECK(copy->node(0).attributes.get_graph("t")->node(0).op_type == "Abs");
}

TEST_CASE("the verifier names what is wrong") {
  const Model m = parse_model("g (x) => (y) { [\"n\"] y = Relu(x) }");
  Graph& g = *m.graph;
  g.node(0).inputs[0] = g.add_value("loose");
  CHECK(contains(message([&] { verify(g); }), "'loose'"));
  g.node(0).inputs[0] = 99;
  CHECK(contains(message([&] { verify(g); }), "Relu 'n'"));
  g.node(0).inputs[0] = g.find_value("y");
  CHECK(contains(message([&] { verify(g); }), "cycle"));
  g.node(0).removed = true;
  g.value(g.find_value("y")).producer = kNoNode;
  CHECK(contains(message([&] { verify(g); }), "output 'y'"));
}

TEST_CASE("a chain of a hundred thousand nodes is no recursion") {
  Graph g;
  ValueId last = g.add_value("x");
  g.add_input(last);
  std::vector<ValueId> values{last};
  for (int i = 0; i < 100000; ++i) values.push_back(g.add_value(cat("v", i)));
  for (size_t i = 100000; i > 0; --i) {
    Node n;
    n.op_type = "Neg";
    n.inputs = {values[i - 1]};
    n.outputs = {values[i]};
    g.add_node(std::move(n));
  }
  g.add_output(values.back());
  CHECK(g.topological_order().size() == 100000);
  verify(g);
}

TEST_CASE("names for files: captures keep the outer name, locals never hide one") {
  const Model m = parse_model("g (c, x) => (y) { a = Abs(x) y = If <t = h () => (p) { p = Neg(a) }> (c) }");
  Graph& g = *m.graph;
  Graph& h = *g.node(1).attributes.get_graph("t");
  GraphPatch patch(g);
  patch.replace_uses(g.find_value("a"), g.find_value("x"));
  patch.apply();
  const ValueId local = h.add_value("x");
  const NameTable outer(g);
  const NameTable inner(h, &outer);
  CHECK(inner[h.captures()[0].inner] == "x");
  CHECK(inner[local] == "x_1");
  CHECK(to_text(g).find("Neg (x)") != std::string::npos);
}
