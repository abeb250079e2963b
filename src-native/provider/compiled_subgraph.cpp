#include "provider/compiled_subgraph.h"

#include <map>
#include <set>

#include "provider/partitioner.h"

namespace infernode::provider {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

void replace_by_compiled(Graph& graph, std::span<const NodeId> nodes, std::string provider) {
  const std::set<NodeId> inside(nodes.begin(), nodes.end());
  const auto consumers = graph.consumers();
  auto body = std::make_shared<Graph>();
  body->name = "compiled_for_" + provider;
  std::map<ValueId, ValueId> renumbered;
  Node compiled;
  compiled.op_type = kCompiled;
  compiled.domain = "infernode";
  compiled.opset = 1;
  compiled.provider = provider;

  const auto inner = [&](ValueId outer) {
    const auto [at, fresh] = renumbered.emplace(outer, kNoValue);
    if (!fresh) return at->second;
    const graph::ValueInfo& value = graph.value(outer);
    if (value.is_constant()) {
      at->second = body->add_constant(value.name, value.constant);
    } else {
      at->second = body->add_value(value.name, value.type);
      if (value.producer == kNoNode || !inside.contains(value.producer)) {
        body->add_input(at->second);
        compiled.inputs.push_back(outer);
      }
    }
    return at->second;
  };
  for (const NodeId id : nodes) {
    Node copy = graph.node(id);
    for (ValueId& input : copy.inputs) input = input == kNoValue ? kNoValue : inner(input);
    for (ValueId& output : copy.outputs) output = output == kNoValue ? kNoValue : inner(output);
    body->add_node(std::move(copy));
  }
  for (const NodeId id : nodes) {
    Node& node = graph.node(id);
    compiled.provenance.push_back(node.name);
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      graph.value(output).producer = kNoNode;
      bool leaves = graph.is_output(output);
      for (const NodeId reader : consumers[static_cast<std::size_t>(output)])
        leaves = leaves || !inside.contains(reader);
      if (!leaves) continue;
      body->add_output(renumbered.at(output));
      compiled.outputs.push_back(output);
    }
    node.removed = true;
  }
  compiled.attributes.set("body", body);
  compiled.attributes.set("provider", std::move(provider));
  graph.add_node(std::move(compiled));
}

}  // namespace infernode::provider
