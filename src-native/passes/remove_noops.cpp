#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/operators.h"
#include "passes/pass.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

bool same_shape(const Graph& graph, ValueId a, ValueId b) {
  const auto& left = graph.value(a).type.shape;
  const auto& right = graph.value(b).type.shape;
  return left && right && *left == *right;
}

/// Expand alone can widen a dim that is 1 at a run where another was declared.
bool expands_nothing(const Graph& graph, const Node& node) {
  if (!same_shape(graph, node.inputs[0], node.outputs[0])) return false;
  const graph::SymShape& shape = *graph.value(node.inputs[0]).type.shape;
  return std::all_of(shape.begin(), shape.end(), [&](const graph::Dim& dim) { return is_certain(graph, dim); });
}

/// Dropout passes its input on unless it trains: from version 12 on an input says so, before that nothing at inference.
bool drops_nothing(const Graph& graph, const Node& node, const std::vector<std::vector<graph::NodeId>>& consumers) {
  if (node.outputs.size() > 1 && node.outputs[1] != kNoValue) {
    if (!consumers[static_cast<std::size_t>(node.outputs[1])].empty() || graph.is_output(node.outputs[1])) return false;
  }
  if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return true;
  const graph::ValueInfo& training = graph.value(node.inputs[2]);
  return training.is_constant() && training.constant.is_tensor() && training.constant.tensor().numel() == 1 &&
         tensor::to_int64_scalar(training.constant.tensor()) == 0;
}

bool keeps_order(const Graph& graph, const Node& node) {
  const auto perm = node.attributes.get_ints("perm");
  if (perm.empty()) {
    const auto& shape = graph.value(node.inputs[0]).type.shape;
    return shape && shape->size() < 2;
  }
  return std::is_sorted(perm.begin(), perm.end());
}

/// Whether the tensor is this one number.
bool is_number(const tensor::Tensor& t, double wanted) {
  if (t.numel() != 1) return false;
  if (t.dtype() == tensor::DType::Float64) return *t.data<double>() == wanted;
  if (tensor::is_floating(t.dtype())) return tensor::to_float_scalar(t) == static_cast<float>(wanted);
  return tensor::is_integer(t.dtype()) && tensor::to_int64_scalar(t) == static_cast<std::int64_t>(wanted);
}

/// The index of the operand that a constant of one element leaves as it is: x + 0, x - 0, x * 1, x / 1. SIZE_MAX where
/// there is none.
std::size_t kept_operand(const Graph& graph, const Node& node, const kernel::OpTraits& traits) {
  if (!traits.neutral || node.inputs.size() != 2) return SIZE_MAX;
  for (const std::size_t kept : {std::size_t{0}, std::size_t{1}}) {
    if (kept == 1 && !traits.commutative) break;
    const ValueId in = node.inputs[kept], other = node.inputs[1 - kept];
    if (in == kNoValue || other == kNoValue) continue;
    const tensor::Tensor* neutral = constant(graph, other);
    if (neutral == nullptr || !is_number(*neutral, traits.neutral->value)) continue;
    if (same_shape(graph, in, node.outputs[0])) return kept;
  }
  return SIZE_MAX;
}

/// A Slice that takes as much as there is, forwards.
bool takes_everything(const Graph& graph, const Node& node) {
  if (!same_shape(graph, node.inputs[0], node.outputs[0])) return false;
  if (node.inputs.size() < 5 || node.inputs[4] == kNoValue) return true;
  const graph::ValueInfo& steps = graph.value(node.inputs[4]);
  if (!steps.is_constant() || !steps.constant.is_tensor()) return false;
  const auto values = tensor::to_int64_vector(steps.constant.tensor());
  return std::all_of(values.begin(), values.end(), [](std::int64_t step) { return step == 1; });
}

bool same_type(const Graph& graph, ValueId a, ValueId b) {
  const tensor::DType type = graph.value(a).type.elem;
  return type != tensor::DType::Undefined && type == graph.value(b).type.elem;
}

/// Whether what a node moves stays where it is.
bool moves_nothing(const Graph& graph, const Node& node, const kernel::OpTraits& traits) {
  using kernel::Axes, kernel::Moves;
  switch (traits.moves) {
    case Moves::Views:
      return same_shape(graph, node.inputs[0], node.outputs[0]);
    case Moves::Converts:
      return same_type(graph, node.inputs[0], node.outputs[0]);
    case Moves::Permutes:
      return is(node, kTranspose) && keeps_order(graph, node);
    case Moves::Selects:
      return traits.axes == Axes::Sliced && takes_everything(graph, node);
    case Moves::Repeats:
      return traits.axes == Axes::Expanded ? expands_nothing(graph, node)
                                           : same_shape(graph, node.inputs[0], node.outputs[0]);
    default:
      return false;
  }
}

/// The index of the input that the node gives as it is; SIZE_MAX where there is none.
std::size_t passed_input(const Graph& graph, const Node& node, const PassOptions& options,
                         const std::vector<std::vector<graph::NodeId>>& consumers) {
  if (node.inputs.empty() || node.outputs.empty() || node.outputs[0] == kNoValue) return SIZE_MAX;
  const kernel::OpTraits& traits = kernel::traits_of(node, *options.registry);
  const bool noop = node.inputs[0] != kNoValue &&
                    (is(node, kIdentity) || (is(node, kDropout) && drops_nothing(graph, node, consumers)) ||
                     (traits.passes_one_on && node.inputs.size() == 1) || moves_nothing(graph, node, traits));
  return noop ? 0 : kept_operand(graph, node, traits);
}

}  // namespace

bool is_certain(const Graph& graph, const graph::Dim& dim) {
  if (dim.known()) return true;
  if (!graph.captures().empty()) return false;
  bool shared = false;
  const auto value = dim.evaluate([&](std::string_view name) -> std::optional<std::int64_t> {
    int count = 0;
    for (const ValueId input : graph.inputs()) {
      const auto& shape = graph.value(input).type.shape;
      if (!shape) continue;
      count += static_cast<int>(
          std::count_if(shape->begin(), shape->end(), [&](const graph::Dim& d) { return d.symbol_name() == name; }));
    }
    shared = shared || count > 1;
    return 1;
  });
  return value && !shared;
}

bool can_bypass(const Graph& graph, ValueId output, ValueId input) {
  if (!graph.is_output(output)) return true;
  const graph::ValueInfo& value = graph.value(input);
  return value.producer != graph::kNoNode && !value.is_input && !value.has_constant() && !graph.is_output(input);
}

bool remove_noops(Graph& graph, const PassOptions& options) {
  const auto consumers = graph::consumers(graph, options);
  // One patch for all: each would pass over the whole graph.
  graph::GraphPatch patch(graph);
  std::unordered_map<ValueId, ValueId> bypassed;
  std::unordered_set<ValueId> named;  // will carry the name of a graph output
  for (const graph::NodeId id : graph::topological_order(graph, options)) {
    options.check();
    const Node& node = graph.node(id);
    const std::size_t kept = passed_input(graph, node, options, consumers);
    if (kept == SIZE_MAX) continue;
    const auto before = bypassed.find(node.inputs[kept]);
    const ValueId in = before == bypassed.end() ? node.inputs[kept] : before->second, out = node.outputs[0];
    if (!can_bypass(graph, out, in) || (graph.is_output(out) && !named.insert(in).second)) continue;
    patch.remove_node(id);
    patch.replace_uses(out, in);
    bypassed.emplace(out, in);
  }
  const bool changed = !patch.empty();
  patch.apply();
  return changed;
}

}  // namespace infernode::passes
