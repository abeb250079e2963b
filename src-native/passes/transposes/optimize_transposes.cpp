// Transposes around nodes that can work in any order of axes: such nodes turn where that leaves fewer or smaller ones.

#include <algorithm>
#include <set>
#include <utility>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/operators.h"
#include "passes/pass.h"
#include "passes/transposes/region.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using transposes::Order;

/// Looks at what lies before and behind each Transpose of the graph once.
class Sweep {
 public:
  Sweep(Graph& graph, const PassOptions& options, TurningBudget& budget)
      : graph_(graph), options_(options), budget_(budget), consumers_(graph::consumers(graph, options)) {}

  bool run() {
    bool changed = false;
    const auto count = static_cast<NodeId>(graph_.node_count());
    for (NodeId id = 0; id < count; ++id) {
      options_.check();
      if (graph_.node(id).removed) continue;
      const auto perm = transposes::perm_of(graph_, graph_.node(id));
      if (!perm) continue;
      const ValueId input = graph_.node(id).inputs[0], output = graph_.node(id).outputs[0];
      if (turn(output, *perm) || turn(input, transposes::inverse(*perm))) changed = true;
    }
    return changed;
  }

 private:
  bool turn(ValueId seed, const Order& order) {
    if (transposes::is_constant(graph_, seed) || tried_.contains({seed, order})) return false;
    transposes::Region region(graph_, *options_.registry, consumers_, budget_);
    const bool grown = region.grow(seed, order);
    region.for_each_value([&](ValueId value, const Order& own) { tried_.emplace(value, own); });
    if (!grown || !region.choose()) return false;
    region.apply(graph_, consumers_);
    return true;
  }

  Graph& graph_;
  const PassOptions& options_;
  TurningBudget& budget_;
  graph::Consumers consumers_;
  std::set<std::pair<ValueId, Order>> tried_;
};

}  // namespace

bool optimize_transposes(Graph& graph, const PassOptions& options) {
  TurningBudget own;
  TurningBudget& budget = options.turning == nullptr ? own : *options.turning;
  bool changed = false;
  while (Sweep(graph, options, budget).run()) changed = true;
  return changed;
}

bool reshape_transposes(Graph& graph, std::string_view provider) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    const Node old = graph.node(id);
    const auto perm = transposes::perm_of(graph, old);
    if (!perm || old.opset < kShapeIsInput) continue;
    if (!provider.empty() && !old.provider.empty() && old.provider != provider) continue;
    const graph::SymShape& shape = *graph.value(old.inputs[0]).type.shape;
    const Order order = transposes::inverse(*perm);
    if (transposes::is_identity(order) || !transposes::moves_nothing(shape, order)) continue;
    const std::vector<std::int64_t> dims = spell(graph, shape, transposes::turned_shape(shape, order));
    if (dims.empty()) continue;
    graph::GraphPatch patch(graph);
    Node node = old;
    node.op_type = kReshape;
    node.attributes = {};
    node.inputs.push_back(patch.add_constant(graph.value(old.outputs[0]).name + "_shape",
                                             tensor::Tensor::of<std::int64_t>({static_cast<std::int64_t>(dims.size())},
                                                                              std::span<const std::int64_t>(dims))));
    const NodeId from[] = {id};
    patch.remove_node(id);
    patch.add_node(std::move(node), from);
    patch.apply();
    changed = true;
  }
  return changed;
}

}  // namespace infernode::passes
