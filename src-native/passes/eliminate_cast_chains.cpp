#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pattern_passes.h"

namespace infernode::passes {

bool eliminate_cast_chains(graph::Graph& graph, const PassOptions& options) {
  const auto is_cast = [](const graph::Node& node) {
    return is(node, kCast) && node.inputs.size() == 1 && node.inputs[0] != graph::kNoValue;
  };
  const auto floats = [&](graph::ValueId id) { return tensor::is_floating(graph.value(id).type.elem); };
  graph::GraphPatch patch(graph);
  for (const graph::NodeId id : graph::topological_order(graph, options)) {
    options.check();
    const graph::Node& last = graph.node(id);
    if (!is_cast(last) || !floats(last.outputs.at(0)) || !floats(last.inputs[0])) continue;
    graph::ValueId source = last.inputs[0];
    for (;;) {
      const graph::NodeId before = graph.value(source).producer;
      if (before == graph::kNoNode || !is_cast(graph.node(before)) || !floats(graph.node(before).inputs[0])) break;
      source = graph.node(before).inputs[0];
    }
    if (source != last.inputs[0]) patch.set_input(id, 0, source);
  }
  if (patch.empty()) return false;
  patch.apply();
  return true;
}

}  // namespace infernode::passes
