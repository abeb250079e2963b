#include <algorithm>

#include "graph/patch.h"
#include "graph/walks.h"
#include "kernel/inference.h"
#include "passes/operators.h"
#include "passes/pass.h"
#include "passes/sound_inference.h"

namespace infernode::passes {

namespace {

using graph::Dim;
using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::SymShape;
using graph::ValueId;

bool is_view(const Node& node, const kernel::Registry& registry) {
  return !node.inputs.empty() && node.inputs[0] != kNoValue && node.outputs.size() == 1 &&
         kernel::traits_of(node, registry).moves == kernel::Moves::Views;
}

/// Its dims do not hang on what the run computes.
bool is_fixed_view(const Graph& graph, const Node& node, const kernel::Registry& registry) {
  if (!is_view(node, registry)) return false;
  return !is(node, kReshape) || node.inputs.size() < 2 ||
         (node.inputs[1] != kNoValue && graph.value(node.inputs[1]).is_constant());
}

void reshape_to(Graph& graph, NodeId id, ValueId input, std::vector<std::int64_t> dims) {
  const Node& old = graph.node(id);
  Node node;
  node.name = old.name;
  node.op_type = kReshape;
  node.opset = old.opset;
  node.outputs = old.outputs;
  graph::GraphPatch patch(graph);
  const ValueId shape = patch.add_constant(
      graph.value(old.outputs[0]).name + "_shape",
      tensor::Tensor::of<std::int64_t>({static_cast<std::int64_t>(dims.size())}, std::span<const std::int64_t>(dims)));
  node.inputs = {input, shape};
  const NodeId from[] = {id};
  patch.add_node(std::move(node), from);
  patch.remove_node(id);
  patch.apply();
}

/// A Reshape whose dims are computed, each of them a number, the input's own dim, or the only one that is neither.
bool settle(Graph& graph, NodeId id, const kernel::InferredGraph& inferred) {
  const Node& node = graph.node(id);
  if (!is(node, kReshape) || node.inputs.size() != 2 || node.inputs[1] == kNoValue) return false;
  const auto shape = static_cast<std::size_t>(node.inputs[1]);
  const auto& input = graph.value(node.inputs[0]).type.shape;
  if (graph.value(node.inputs[1]).is_constant() || node.attributes.get_int("allowzero", 0) != 0 || !input) return false;
  if (shape >= inferred.contents.size() || !inferred.contents[shape]) return false;
  const SymShape& wanted = *inferred.contents[shape];
  const bool complete = std::any_of(wanted.begin(), wanted.end(), [](const Dim& dim) { return dim.is(-1); }) ||
                        graph::numel(wanted) == graph::numel(*input);
  std::vector<std::int64_t> dims = spell(graph, *input, wanted);
  // A -1 would hide that a dim does not fit.
  if (!complete && std::find(dims.begin(), dims.end(), -1) != dims.end()) return false;
  if (dims.empty()) return false;
  reshape_to(graph, id, node.inputs[0], std::move(dims));
  return true;
}

/// Two views in a row, where the second one's dims can be said in those of the first one's input.
bool merge(Graph& graph, NodeId id, const kernel::Registry& registry) {
  const Node& node = graph.node(id);
  const NodeId before = graph.value(node.inputs[0]).producer;
  if (before == kNoNode || !is_fixed_view(graph, graph.node(before), registry) || !is_fixed_view(graph, node, registry))
    return false;
  const ValueId source = graph.node(before).inputs[0];
  const auto &input = graph.value(source).type.shape, &output = graph.value(node.outputs[0]).type.shape;
  if (!input || !output) return false;
  std::vector<std::int64_t> dims = spell(graph, *input, *output);
  if (dims.empty()) return false;
  reshape_to(graph, id, source, std::move(dims));
  return true;
}

}  // namespace

std::vector<std::int64_t> spell(const Graph& graph, const SymShape& input, const SymShape& wanted) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Dim& dim = wanted[i];
    const bool kept = i < input.size() && input[i] == dim && is_certain(graph, dim);
    if (dim.known() && dim.value() > 0)
      dims.push_back(dim.value());
    else if (kept)
      dims.push_back(0);
    else if (dim.is(0))
      return {};
    else
      dims.push_back(-1);
  }
  return std::count(dims.begin(), dims.end(), -1) <= 1 ? dims : std::vector<std::int64_t>{};
}

bool fuse_reshapes(Graph& graph, const PassOptions& options) {
  const std::vector<NodeId> order = graph::topological_order(graph, options);
  const auto view = [&](NodeId id) { return is_view(graph.node(id), *options.registry); };
  if (std::none_of(order.begin(), order.end(), view)) return false;
  const auto inferred = infer_sound(graph, order, *options.registry, options.logger, options.load);
  if (!inferred) return false;
  bool changed = false;
  for (const NodeId id : order) {
    options.check();
    const Node& node = graph.node(id);
    if (node.removed || !view(id) || node.opset < kShapeIsInput) continue;
    changed = merge(graph, id, *options.registry) || settle(graph, id, *inferred) || changed;
  }
  return changed;
}

}  // namespace infernode::passes
