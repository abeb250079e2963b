// Before activations are quantized: makes them outputs, so that runs tell their ranges.

#include <set>

#include "base/error.h"
#include "kernel/inference.h"
#include "transform/static_marks.h"
#include "transform/transformation.h"
#include "transform/weights.h"

namespace infernode::transform {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;

void observe_tensors(graph::Model& model, const Settings& settings, const Context& context, Report& report) {
  Graph& graph = *model.graph;
  check_unquantized(graph);
  kernel::infer_graph(graph, context.registry, nullptr, &context.run);
  const NodeChoice choice(graph, settings, "nodesToQuantize");
  std::set<ValueId> seen(graph.outputs().begin(), graph.outputs().end());
  bool any = false;
  const auto observe = [&](const std::vector<ValueId>& values) {
    for (const ValueId id : values) {
      if (id == graph::kNoValue || constant_of(graph, id) != nullptr) continue;
      const graph::ValueType& type = graph.value(id).type;
      if (!type.is_tensor() || type.elem != DType::Float32) continue;
      any = true;
      if (seen.insert(id).second) graph.add_output(id);
    }
  };
  const std::size_t count = graph.node_count();
  for (std::size_t i = 0; i < count; ++i) {
    context.run.check();
    const Node& node = graph.node(static_cast<NodeId>(i));
    if (!node.removed && choice.has_type(node)) {
      observe(node.inputs);
      observe(node.outputs);
    }
    context.tell(i + 1, count);
  }
  if (!any) check_changed(graph, report, "operator that opTypesToQuantize names has an activation of float32", {});
}

}  // namespace infernode::transform
