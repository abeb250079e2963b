#include "kernel/op_traits.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/text.h"
#include "kernel/registry.h"

namespace infernode::kernel {
namespace {

graph::Node node_of(const char* op, std::int64_t opset, const char* domain = "") {
  graph::Node node;
  node.op_type = op;
  node.domain = domain;
  node.opset = opset;
  return node;
}

TEST_CASE("An operator has the traits that its registration says, others have none") {
  Registry registry;
  OpRegistrar r(registry);
  r.op("Sum2").version(1, "X:T, Y:T -> Z:T; T = float").broadcasts().commutative().neutral(0);
  r.op("Plain").version(1, "X:T -> Y:T; T = float");
  const OpTraits& sum = traits_of(node_of("Sum2", 5), registry);
  CHECK(sum.axes == Axes::Broadcast);
  CHECK(sum.is_elementwise());
  CHECK(sum.blocks == Blocks::Float);  // as all that is elementwise
  CHECK(sum.commutative);
  CHECK(sum.neutral->value == 0);
  for (const char* op : {"Plain", "Missing"}) {
    const OpTraits& none = traits_of(node_of(op, 5), registry);
    CHECK(none.axes == Axes::Fixed);
    CHECK(none.moves == Moves::Nothing);
    CHECK(none.blocks == Blocks::None);
    CHECK_FALSE((none.activation != nullptr));
  }
  CHECK(traits_of(node_of("Sum2", 5, "other"), registry).axes == Axes::Fixed);
}

TEST_CASE("Traits go for the versions from the one named on, and later ones take their place") {
  Registry registry;
  OpRegistrar r(registry);
  r.op("Soft")
      .version(1, "X:T -> Y:T; T = float")
      .version(2, "X:T -> Y:T; T = float")
      .version(13, "X:T -> Y:T; T = float")
      .axes(Axes::From, 2)
      .along_axis(-1, 13);
  CHECK(traits_of(node_of("Soft", 1), registry).axes == Axes::Fixed);
  CHECK(traits_of(node_of("Soft", 12), registry).axes == Axes::From);
  CHECK(traits_of(node_of("Soft", 17), registry).axes == Axes::Along);
  CHECK(traits_of(node_of("Soft", 17), registry).default_axis == -1);
}

TEST_CASE("Traits stand behind the versions that have them") {
  Registry registry;
  OpRegistrar r(registry);
  CHECK_THROWS_AS(r.op("Early").elementwise(), Error);
  CHECK_THROWS_AS(r.op("Between").version(1, "X:T -> Y:T; T = float").elementwise().version(6, "X:T -> Y:T; T = float"),
                  Error);
  CHECK_THROWS_AS(r.op("Never").version(1, "X:T -> Y:T; T = float").broadcasts(7), Error);
}

TEST_CASE("An activation says what fused operators are told of it, where its constants are known") {
  const graph::Model model = graph::parse_model(
      "(float[4] x, float m) => (a, b, c, d) <float l = {-1}, float[1] h = {2}, float[1,1] w = {3}> "
      "{ a = Clip(x, l, h)  b = Clip(x, m)  c = Clip(x, w)  d = Clip(x) }");
  const graph::Graph& graph = *model.graph;
  const auto node = [&](std::size_t i) {
    return NodeConstants(graph, graph.node(graph.value(graph.outputs()[i]).producer));
  };
  CHECK(node(0).scalar(1) == -1.0f);
  CHECK(node(0).scalar(2) == 2.0f);
  CHECK(node(1).has_input(1));
  CHECK_FALSE(node(1).scalar(1));  // fed
  CHECK_FALSE(node(2).scalar(1));  // would raise the rank
  CHECK_FALSE(node(3).has_input(1));
  graph::Attributes attributes;
  FusedActivation{}.set(attributes);
  CHECK(attributes.size() == 0);
  FusedActivation{"Clip", {-1, 2}}.set(attributes);
  CHECK(attributes.get_string("activation") == "Clip");
  CHECK(attributes.get_floats("activation_params") == std::vector<float>{-1, 2});
}

}  // namespace
}  // namespace infernode::kernel
