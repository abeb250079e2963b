// Who reads what is dequantized: in files each reader has a DequantizeLinear of its own, in a session they share one.
#include "fusions/graph_test.h"
#include "graph/captures.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kName = "EnsureUniqueDQForNodeUnit";
using Names = std::set<std::string, std::less<>>;

/// `q`, codes of `x`, dequantized to `d`.
std::string unit(const std::string& nodes, const std::string& outputs = "y",
                 const std::string& inputs = "float[1,2,4,4] x") {
  return cat("(", inputs, ") => (", outputs,
             ") <float s = {0.0078125}, float r = {0.03125}, uint8 z = {7}, int8[2,1,2,1] w = {10,-20,30,-128}> { q = "
             "QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  ",
             nodes, " }");
}

/// At level basic as a file gets it; checks that the answers stay.
graph::Model written(const std::string& text, const Names& disabled = {}, bool separate = true) {
  CAPTURE(text);
  const graph::Model before = parse(text, 21);
  graph::Model model = parse(text, 21);
  graph::adopt_constants(*model.graph);
  passes::PassOptions options = pass_options(1, disabled);
  options.keep_dequantizers = true;
  options.separate_dequantizers = separate;
  passes::run_basic(model, options);
  graph::verify(*model.graph);
  const std::vector<Value> inputs = feeds(*before.graph);
  check_same(evaluate(*model.graph, inputs), evaluate(*before.graph, inputs), 0);
  return model;
}
/// The most readers that one DequantizeLinear has.
std::size_t most_readers(const graph::Graph& graph) {
  std::size_t most = 0;
  const auto consumers = graph.consumers();
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.op_type != "DequantizeLinear") continue;
    const std::size_t as_output = graph.is_output(node.outputs[0]) ? 1 : 0;
    most = std::max(most, consumers[static_cast<std::size_t>(node.outputs[0])].size() + as_output);
  }
  return most;
}
}  // namespace

TEST_CASE("each reader has a DequantizeLinear of its own, also in a graph that shares one") {
  const std::string shared =
      unit("t = Sigmoid(d)  y = QuantizeLinear(t, r, z)  u = Add(d, d)  v = QuantizeLinear(u, r, z)", "y, v");
  const std::string now =
      "q = QuantizeLinear (x, s, z)\n"
      "d = DequantizeLinear (q, s, z)\nt = Sigmoid (d)\ny = QuantizeLinear (t, r, z)\n"
      "d_own = DequantizeLinear (q, s, z)\nd_own_12 = DequantizeLinear (q, s, z)\nu = Add (d_own, d_own_12)\n"
      "v = QuantizeLinear (u, r, z)";
  const graph::Model model = written(shared);
  CHECK(nodes(*model.graph) == now);
  CHECK(most_readers(*model.graph) == 1);
  // What merges equal nodes makes one of those that a file brings; they are made anew.
  const graph::Model again = written(
      "(float[1,2,4,4] x) => (y) <float s = {0.5}, uint8 z = {7}> { q = "
      "QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  e = DequantizeLinear(q, "
      "s, z)  f = Neg(d)  y = Add(f, e) }");
  CHECK(most_readers(*again.graph) == 1);
}

TEST_CASE("weights that are shared are dequantized for each product") {
  const graph::Model model = written(
      "(float[2,2] x) => (y) <float s = {0.5}, uint8 z = {7}, int8[2,2] c = {1,2,3,4}> { q = QuantizeLinear(x, s, z)  "
      "d = DequantizeLinear(q, s, z)  w = DequantizeLinear(c, s)  t = MatMul(d, w)  u = QuantizeLinear(t, s, z)  e = "
      "DequantizeLinear(u, s, z)  y = MatMul(e, w) }");
  CHECK(most_readers(*model.graph) == 1);
  CHECK(nodes(*model.graph).find("w_own = DequantizeLinear (c, s)") != std::string::npos);
}

TEST_CASE("outputs of the graph and bodies of nodes keep the one that is there") {
  const graph::Model out = written(unit("y = Sigmoid(d)", "y, d"));
  CHECK(nodes(*out.graph).find("y = Sigmoid (d_own)") != std::string::npos);
  const graph::Model body = written(
      unit("t = Sigmoid(d)  y = If(m) <then_branch = a () => (u) { u = Add(d, d) }, else_branch = b () => (v) { v = "
           "Neg(d) }>  p = QuantizeLinear(t, r, z)",
           "y, p", "float[1,2,4,4] x, bool m"));
  const std::string text = nodes(*body.graph);
  CHECK_MESSAGE(text.find("t = Sigmoid (d_own)") != std::string::npos, text);
  CHECK(text.find("u = Add (d, d)") != std::string::npos);
}

TEST_CASE("nothing changes where each has one reader, where it is switched off, and for a run") {
  const std::string one = unit("t = Sigmoid(d)  y = QuantizeLinear(t, r, z)"),
                    two = unit("t = Sigmoid(d)  u = Neg(d)  y = Add(t, u)");
  CHECK(nodes(*written(one).graph) == nodes(*parse(one, 21).graph));
  CHECK(nodes(*written(unit("y = Sigmoid(x)", "y, d")).graph).find("_own") == std::string::npos);
  CHECK(nodes(*written(two, {kName}).graph).find("_own") == std::string::npos);
  CHECK(nodes(*written(two, {}, false).graph).find("_own") == std::string::npos);
  CHECK(nodes(*written(two).graph).find("_own") != std::string::npos);
}

TEST_CASE("sharing one or having one each, nodes become the same units") {
  const std::string nodes_of =
      "wf = DequantizeLinear(w, s)  t = Conv<group = 2>(d, wf)  y = QuantizeLinear(t, r, z)  u = Sigmoid(D)  v = "
      "QuantizeLinear(u, r, z)  g = Neg(E)";
  const auto made = [&](const std::string& d, const std::string& e, const std::string& more) {
    std::string text = more + nodes_of;
    text.replace(text.find("(D)"), 3, "(" + d + ")");
    text.replace(text.find("(E)"), 3, "(" + e + ")");
    graph::Model model = parse(unit(text, "y, v, g"), 21);
    optimize(model, 2);
    return nodes(*model.graph);
  };
  const std::string shared = made("d", "d", "");
  CHECK(shared == made("e", "f", "e = DequantizeLinear(q, s, z)  f = DequantizeLinear(q, s, z)  "));
  CHECK(shared.find("y = QLinearConv <group = 2> (q, s, z, w, s, w_zero, r, z)") != std::string::npos);
  CHECK(shared.find("v = com.microsoft.QLinearSigmoid (q, s, z, r, z)") != std::string::npos);
  CHECK(shared.find("d = DequantizeLinear (q, s, z)") != std::string::npos);  // what reads floats
}
