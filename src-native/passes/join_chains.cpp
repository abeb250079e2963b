#include <algorithm>

#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/operators.h"
#include "passes/pass.h"
#include "passes/transposes/order.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;

/// Every value of `from` is a value of `to`, so that a cast through `to` loses nothing.
bool widens(DType from, DType to) {
  if (from == to) return true;
  const auto bits = [](DType t) { return tensor::bit_size(t); };
  if (from == DType::Bool) return tensor::is_integer(to) || to == DType::Float32 || to == DType::Float64;
  if (tensor::is_integer(from) && tensor::is_integer(to)) {
    const bool from_signed = tensor::is_signed_integer(from), to_signed = tensor::is_signed_integer(to);
    return from_signed == to_signed ? bits(to) > bits(from) : to_signed && bits(to) > bits(from);
  }
  if (from == DType::Float16 || from == DType::BFloat16) return to == DType::Float32 || to == DType::Float64;
  return from == DType::Float32 && to == DType::Float64;
}

/// A view's target dims, where they stand on their own: constant, and without a 0 that copies the input's dim.
bool absolute_shape(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2 || node.inputs[1] == kNoValue) return false;
  const graph::ValueInfo& shape = graph.value(node.inputs[1]);
  if (!shape.is_constant() || !shape.constant.is_tensor()) return false;
  const auto dims = tensor::to_int64_vector(shape.constant.tensor());
  return node.attributes.get_int("allowzero", 0) == 0 && std::find(dims.begin(), dims.end(), 0) == dims.end();
}

/// The order of a Transpose, also where it is the default and the rank is known; empty otherwise.
transposes::Order perm_of(const Graph& graph, const Node& node) {
  if (node.attributes.has("perm")) return node.attributes.get_ints("perm");
  return transposes::perm_of(graph, node).value_or(transposes::Order());
}

/// The second of two nodes in a row made to read the first one's input; false where the pair stays.
bool join(Graph& graph, NodeId second_id, const Node& first, const Node& second, const PassOptions& options) {
  const ValueId source = first.inputs[0];
  if (is(first, kTranspose) && is(second, kTranspose)) {
    const transposes::Order before = perm_of(graph, first), after = perm_of(graph, second);
    if (before.empty() || before.size() != after.size()) return false;
    std::vector<std::int64_t> perm;
    for (const std::int64_t axis : after) {
      if (axis < 0 || axis >= static_cast<std::int64_t>(before.size())) return false;
      perm.push_back(before[static_cast<std::size_t>(axis)]);
    }
    graph.node(second_id).attributes.set("perm", perm);
  } else if (is(second, kReshape)) {
    const bool view = kernel::traits_of(first, *options.registry).moves == kernel::Moves::Views;
    if (!view || !absolute_shape(graph, second)) return false;
  } else if (is(first, kCast) && is(second, kCast)) {
    const DType from = graph.value(source).type.elem, middle = graph.value(second.inputs[0]).type.elem;
    if (from == DType::Undefined || middle == DType::Undefined || !widens(from, middle)) return false;
  } else if (is(first, kCast) && is(second, kShape)) {
    // A cast's dims are its input's.
  } else {
    return false;
  }
  graph::GraphPatch patch(graph);
  patch.set_input(second_id, 0, source);
  patch.apply();
  return true;
}

}  // namespace

bool join_chains(Graph& graph, const PassOptions& options) {
  bool changed = false;
  for (const NodeId id : graph::topological_order(graph, options)) {
    options.check();
    const Node& second = graph.node(id);
    if (!second.domain.empty() || second.inputs.empty() || second.inputs[0] == kNoValue) continue;
    const NodeId before = graph.value(second.inputs[0]).producer;
    if (before == kNoNode) continue;
    const Node& first = graph.node(before);
    if (!first.domain.empty() || first.inputs.empty() || first.inputs[0] == kNoValue) continue;
    changed = join(graph, id, first, second, options) || changed;
  }
  return changed;
}

}  // namespace infernode::passes
