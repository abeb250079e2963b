#include <algorithm>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pass.h"

namespace infernode::passes {

bool remove_dead_nodes(graph::Graph& graph, const PassOptions& options) {
  std::vector<std::size_t> uses(graph.values().size(), 0);
  const auto consumers = graph::consumers(graph, options);
  for (std::size_t v = 0; v < consumers.size(); ++v) uses[v] = consumers[v].size();
  for (const graph::ValueId id : graph.outputs()) ++uses[static_cast<std::size_t>(id)];
  graph::GraphPatch patch(graph);
  const std::vector<graph::NodeId> order = graph::topological_order(graph, options);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    options.check();
    const graph::Node& node = graph.node(*at);
    const bool read = std::any_of(node.outputs.begin(), node.outputs.end(), [&](graph::ValueId id) {
      return id != graph::kNoValue && uses[static_cast<std::size_t>(id)] > 0;
    });
    if (read) continue;
    patch.remove_node(*at);
    for (const graph::ValueId id : node.inputs) {
      if (id != graph::kNoValue) --uses[static_cast<std::size_t>(id)];
    }
    for (const graph::ValueId id : graph::implicit_inputs(node)) --uses[static_cast<std::size_t>(id)];
  }
  if (patch.empty()) return false;
  patch.apply();
  return true;
}

}  // namespace infernode::passes
