// What goes over graphs of very many nodes looks now and then, which may end it.
#include "graph/walks.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/patch.h"
#include "graph/verifier.h"

using namespace infernode;
using namespace infernode::graph;

namespace {

constexpr ValueId kNodes = 18'000;

/// A chain of kNodes, of which each third hangs in the air and is removed.
Graph chain() {
  Graph graph;
  ValueId last = graph.add_value("x");
  graph.add_input(last);
  for (ValueId i = 0; i < kNodes; ++i) {
    const ValueId next = graph.add_value(cat("v", i));
    Node node;
    node.op_type = "Neg";
    node.inputs = {last};
    node.outputs = {next};
    node.removed = i % 3 == 2;
    if (!node.removed) last = next;
    graph.add_node(std::move(node));
  }
  graph.add_output(last);
  return graph;
}

}  // namespace

TEST_CASE("walks over very many nodes look, and end where a look throws") {
  constexpr int kBetween = 1024;
  const auto check = [](int steps, auto&& walk) {
    int looks = 0;
    walk(Look([&] { ++looks; }));
    CHECK(looks >= steps / kBetween);
    const auto end = [] { fail(ErrorCode::Aborted, "ended"); };
    CHECK_THROWS_WITH_AS(walk(Look(end)), "ended", Error);
  };
  const Graph graph = chain();
  constexpr int kLive = kNodes * 2 / 3;
  check(kLive, [&](Look look) {
    const auto order = topological_order(graph, look);
    CHECK(order == graph.topological_order());
  });
  check(kNodes, [&](Look look) {
    const auto readers = consumers(graph, look);
    CHECK(readers == graph.consumers());
  });
  check(2 * kNodes, [&](Look look) {
    const auto copy = GraphPatch::clone(graph, look);
    CHECK(copy->node_count() == graph.node_count());
  });
  check(3 * kNodes, [&](Look look) {
    Graph own = graph;
    GraphPatch::compact(own, look);
    CHECK(own.node_count() == static_cast<std::size_t>(kLive));
    CHECK(own.values().size() == own.node_count() + 1);
    verify(own);
  });
  check(3 * kNodes, [&](Look look) { verify(graph, look); });
}

TEST_CASE("a clone is a graph of its own, with its bodies") {
  Graph body;
  body.name = "body";
  const ValueId inner = body.add_value("i");
  body.add_capture({inner, 0});
  body.add_output(inner);
  Graph graph;
  graph.name = "outer";
  graph.doc = "said of it";
  graph.add_input(graph.add_value("x"));
  Node node;
  node.op_type = "If";
  node.outputs = {graph.add_value("y")};
  node.attributes.set("then_branch", std::make_shared<Graph>(body));
  node.attributes.set("bodies", std::vector<std::shared_ptr<Graph>>{std::make_shared<Graph>(body)});
  graph.add_node(std::move(node));
  graph.add_output(graph.find_value("y"));

  const std::shared_ptr<Graph> copy = graph.clone();
  CHECK(copy->name == "outer");
  CHECK(copy->doc == "said of it");
  CHECK(copy->inputs() == graph.inputs());
  CHECK(copy->outputs() == graph.outputs());
  CHECK(copy->find_value("y") == graph.find_value("y"));
  CHECK(copy->value(1).producer == 0);
  const auto mine = subgraphs(graph.node(0)), theirs = subgraphs(copy->node(0));
  REQUIRE(theirs.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(mine[i] != theirs[i]);
    CHECK(theirs[i]->name == "body");
    CHECK(theirs[i]->captures().size() == 1);
    CHECK(theirs[i]->find_value("i") == inner);
  }
}
