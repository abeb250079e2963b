#include <map>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/operators.h"
#include "passes/pass.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

/// The branch that an If always takes; nullptr where its condition is not known.
std::shared_ptr<Graph> taken_branch(const Graph& graph, const Node& node) {
  if (!is(node, kIf) || node.inputs.size() != 1 || node.inputs[0] == kNoValue) return {};
  const graph::ValueInfo& condition = graph.value(node.inputs[0]);
  if (!condition.is_constant() || !condition.constant.is_tensor()) return {};
  const tensor::Tensor& t = condition.constant.tensor();
  if (t.dtype() != tensor::DType::Bool || t.numel() != 1) return {};
  const auto branch = node.attributes.get_graph(*t.data<bool>() ? "then_branch" : "else_branch");
  return branch && branch->outputs().size() >= node.outputs.size() ? branch : nullptr;
}

void inline_branch(Graph& graph, NodeId id, const Graph& branch) {
  graph::GraphPatch patch(graph);
  std::map<ValueId, ValueId> outside;
  for (const graph::Capture& capture : branch.captures()) outside[capture.inner] = capture.outer;
  const auto place = [&](ValueId inner) {
    if (inner == kNoValue) return kNoValue;
    const auto known = outside.find(inner);
    if (known != outside.end()) return known->second;
    const graph::ValueInfo& value = branch.value(inner);
    const ValueId placed =
        value.has_constant() ? patch.add_constant(value.name, value.constant) : patch.add_value(value.name, value.type);
    return outside[inner] = placed;
  };
  for (const NodeId inner : branch.topological_order()) {
    Node node = branch.node(inner);
    for (ValueId& value : node.inputs) value = place(value);
    for (ValueId& value : node.outputs) value = place(value);
    for (const auto& body : graph::subgraphs(node)) {
      for (graph::Capture& capture : body->mutable_captures()) capture.outer = place(capture.outer);
    }
    patch.add_node(std::move(node));
  }
  const std::vector<ValueId> outputs = graph.node(id).outputs;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] != kNoValue) patch.replace_uses(outputs[o], place(branch.outputs()[o]));
  }
  patch.remove_node(id);
  patch.apply();
}

}  // namespace

bool inline_branches(Graph& graph, const PassOptions& options) {
  bool changed = false;
  for (const NodeId id : graph::topological_order(graph, options)) {
    options.check();
    const auto branch = taken_branch(graph, graph.node(id));
    if (!branch) continue;
    inline_branch(graph, id, *branch);
    changed = true;
  }
  return changed;
}

}  // namespace infernode::passes
