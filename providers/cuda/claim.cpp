#include "providers/cuda/claim.h"

#include <algorithm>

#include "kernel/op_traits.h"

namespace infernode::cuda {

namespace {

using graph::kNoValue;
using graph::NodeId;
using graph::ValueId;

std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }
std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

std::vector<graph::ValueType> types_of(const graph::Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<graph::ValueType> types;
  for (const ValueId id : ids) types.push_back(id == kNoValue ? graph::ValueType{} : graph.value(id).type);
  return types;
}

/// Whether the node's results follow from the shapes of its inputs, or from contents that do.
bool follows_from_shapes(const graph::Graph& graph, const graph::Node& node, const kernel::Registry& registry,
                         const std::vector<bool>& known) {
  const kernel::Axes axes = kernel::traits_of(node, registry).axes;
  if (axes == kernel::Axes::Dims || axes == kernel::Axes::Count) return true;
  const kernel::OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
  if (schema == nullptr || !schema->deterministic || !graph::subgraphs(node).empty()) return false;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue && !known[at(id)]) return false;
  }
  for (const ValueId id : node.outputs) {
    if (id != kNoValue && !graph.value(id).type.is_tensor()) return false;
  }
  return registry.find_kernel("cpu", *schema, types_of(graph, node.inputs), types_of(graph, node.outputs)) != nullptr;
}

/// By ValueId: contents are known when shapes are.
class Known {
 public:
  Known(const graph::Graph& graph, std::span<const NodeId> order, const kernel::Registry& registry)
      : values_(graph.values().size()), nodes_(graph.node_count()) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const graph::ValueInfo& value = graph.value(static_cast<ValueId>(i));
      values_[i] = value.is_constant() && value.constant.is_tensor();
    }
    for (const NodeId id : order) {
      const graph::Node& node = graph.node(id);
      if (!follows_from_shapes(graph, node, registry, values_)) continue;
      nodes_[index(id)] = true;
      for (const ValueId output : node.outputs) {
        if (output != kNoValue) values_[at(output)] = true;
      }
    }
  }
  bool is_known(NodeId id) const { return nodes_[index(id)]; }
  const std::vector<bool>& values() const { return values_; }

 private:
  std::vector<bool> values_, nodes_;
};

/// The partitioner cuts claimed nodes where a path leaves them and comes back, and what is known in one part is data to
/// the next. So nodes that need contents from a part before their own go. Returns whether there were any.
bool drop_cut_off(const graph::Graph& graph, std::span<const NodeId> order, const Known& known,
                  std::vector<bool>& taken) {
  std::vector<std::size_t> part(graph.node_count());
  bool changed = false;
  for (const NodeId id : order) {
    const graph::Node& node = graph.node(id);
    const auto follow = [&](ValueId input) {
      if (input == kNoValue || graph.value(input).producer == graph::kNoNode) return;
      const NodeId producer = graph.value(input).producer;
      part[index(id)] =
          std::max(part[index(id)], part[index(producer)] + (!taken[index(id)] && taken[index(producer)] ? 1 : 0));
    };
    for (const ValueId input : node.inputs) follow(input);
    for (const ValueId input : graph::implicit_inputs(node)) follow(input);
    if (!taken[index(id)]) continue;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || !known.values()[at(input)]) continue;
      const NodeId producer = graph.value(input).producer;
      if (producer == graph::kNoNode) continue;
      if (!taken[index(producer)] || part[index(producer)] != part[index(id)]) {
        taken[index(id)] = false;
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace

std::vector<NodeId> claimed_nodes(const provider::GraphView& view, const LoweringTable& lowerings) {
  const std::vector<NodeId> order = view.graph.topological_order();
  const Known known(view.graph, order, view.registry);
  const auto consumers = view.graph.consumers();
  std::vector<bool> taken(view.graph.node_count());
  for (const NodeId id : view.nodes) {
    const graph::Node& node = view.graph.node(id);
    if (known.is_known(id)) continue;
    taken[index(id)] = lowerings.can_run(NodeView(view.graph, node, known.values()));
  }
  // From the last node to the first: a node of known values is taken where a taken node reads it.
  const std::vector<NodeId> offered(view.nodes.begin(), view.nodes.end());
  for (auto id = offered.rbegin(); id != offered.rend(); ++id) {
    if (!known.is_known(*id)) continue;
    for (const ValueId output : view.graph.node(*id).outputs) {
      if (output == kNoValue) continue;
      for (const NodeId reader : consumers[at(output)]) {
        if (taken[index(reader)]) taken[index(*id)] = true;
      }
    }
  }
  while (drop_cut_off(view.graph, order, known, taken)) {
  }
  std::vector<NodeId> claimed;
  std::copy_if(offered.begin(), offered.end(), std::back_inserter(claimed),
               [&](NodeId id) { return taken[index(id)]; });
  return claimed;
}

bool can_lower_all(const graph::Graph& graph, std::span<const NodeId> order, const kernel::Registry& registry,
                   const LoweringTable& lowerings) {
  const Known known(graph, order, registry);
  return std::all_of(order.begin(), order.end(), [&](NodeId id) {
    return known.is_known(id) || lowerings.can_run(NodeView(graph, graph.node(id), known.values()));
  });
}

}  // namespace infernode::cuda
