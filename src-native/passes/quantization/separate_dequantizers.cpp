#include <map>
#include <utility>
#include <vector>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pattern_passes.h"

namespace infernode::passes {

bool separate_dequantizers(graph::Graph& graph, const PassOptions& options) {
  using graph::NodeId;
  using graph::ValueId;
  const std::vector<NodeId> order = graph::topological_order(graph, options);
  std::map<ValueId, std::vector<std::pair<NodeId, std::size_t>>> uses;  // of what is dequantized, by nodes' inputs
  for (const NodeId id : order) {
    options.check();
    const graph::Node& node = graph.node(id);
    if (is_dequantizer(node) && node.outputs[0] != graph::kNoValue) uses[node.outputs[0]] = {};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (const auto found = uses.find(node.inputs[i]); found != uses.end()) found->second.emplace_back(id, i);
    }
  }
  const auto consumers = graph::consumers(graph, options);  // bodies of nodes count, too
  graph::GraphPatch patch(graph);
  for (const auto& [value, all] : uses) {
    const bool read_elsewhere =
        graph.is_output(value) || consumers[static_cast<std::size_t>(value)].size() != all.size();
    const NodeId maker = graph.value(value).producer;
    for (std::size_t i = read_elsewhere ? 0 : 1; i < all.size(); ++i) {
      graph::Node own = graph.node(maker);
      own.name.clear();
      own.outputs = {patch.add_value(graph.value(value).name + "_own", graph.value(value).type)};
      patch.set_input(all[i].first, all[i].second, own.outputs[0]);
      patch.add_node(std::move(own), {&maker, 1});
    }
  }
  if (patch.empty()) return false;
  patch.apply();
  return true;
}

}  // namespace infernode::passes
