#include "base/error.h"
#include "graph/text.h"
#include "kernel/inference.h"

namespace infernode::kernel {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using graph::ValueType;

bool has_kernel(const Graph& graph, const Node& node, const OpSchema& schema, const Registry& registry) {
  const auto types = [&](const std::vector<ValueId>& ids) {
    std::vector<ValueType> out;
    for (const ValueId id : ids) out.push_back(id == graph::kNoValue ? ValueType{} : graph.value(id).type);
    return out;
  };
  return registry.find_kernel("cpu", schema, types(node.inputs), types(node.outputs)) != nullptr;
}

std::size_t expand(Graph& graph, const Registry& registry, const RunContext* load) {
  std::size_t expanded = 0;
  // Nodes of bodies are added at the end, so definitions that use other functions are expanded too. They cannot go
  // round: the standard's definitions are made of operators with kernels in the end.
  for (NodeId id = 0; id < static_cast<NodeId>(graph.node_count()); ++id) {
    if (graph.node(id).removed) continue;
    if (load != nullptr) load->check();
    for (const auto& body : graph::subgraphs(graph.node(id))) expanded += expand(*body, registry, load);
    const Node& node = graph.node(id);
    const OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
    if (schema == nullptr || schema->function_body.empty() || has_kernel(graph, node, *schema, registry)) continue;
    graph::FunctionDef function = graph::parse_function(schema->function_body, schema->since_version);
    graph::inline_function(graph, id, function);
    ++expanded;
  }
  return expanded;
}

}  // namespace

std::size_t expand_functions(Graph& graph, const Registry& registry, const RunContext* load) {
  return expand(graph, registry, load);
}

}  // namespace infernode::kernel
