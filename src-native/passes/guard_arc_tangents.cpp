#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "graph/patch.h"
#include "kernel/inference.h"
#include "passes/operators.h"
#include "passes/pipeline.h"
#include "passes/sound_inference.h"
#include "tensor/dispatch.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::Tensor;

/// Numbers that are constant, or computed of constants by nodes: nothing is folded at level disabled.
class Numbers {
 public:
  Numbers(const Graph& graph, const kernel::Registry& registry)
      : graph_(graph), inferred_(infer_sound(graph, graph.topological_order(), registry)) {}

  bool is(ValueId id, double wanted) const {
    if (id == kNoValue) return false;
    const Tensor* given = constant(graph_, id);
    const Tensor known = given != nullptr ? *given : inferred_ ? kernel::known_tensor(*inferred_, id) : Tensor();
    if (!known || known.numel() != 1 || !(tensor::is_floating(known.dtype()) || tensor::is_integer(known.dtype())))
      return false;
    constexpr double kHalfPrecision = 2e-3;  // of pi
    const double distance = std::abs(static_cast<double>(tensor::to_float_vector(known)[0]) - wanted);
    return wanted == 0 ? distance == 0 : distance <= kHalfPrecision;
  }

 private:
  const Graph& graph_;
  std::optional<kernel::InferredGraph> inferred_;
};

/// Finds what exporters write for atan2(y, x):
///   a = Atan(Div(y, x)), Where(x < 0, Where(y > 0, a + pi, a - pi), a)
class ArcTangents {
 public:
  ArcTangents(const Graph& graph, const kernel::Registry& registry)
      : graph_(graph), numbers_(graph, registry), consumers_(graph.consumers()) {}

  /// The division of an arc tangent that is one of two numbers; kNoNode for others.
  NodeId division_of(const Node& atan) const {
    const NodeId id = maker(atan.inputs.at(0), "Div");
    if (id == kNoNode) return kNoNode;
    const ValueId y = graph_.node(id).inputs.at(0), x = graph_.node(id).inputs.at(1), a = atan.outputs.at(0);
    const std::vector<NodeId>& readers = consumers_[static_cast<std::size_t>(a)];
    const bool found = std::ranges::any_of(readers, [&](NodeId reader) {
      const Node& choice = graph_.node(reader);
      return is(choice, kWhere) && choice.inputs.at(2) == a && is_sign(choice.inputs[0], x, "Less", "Greater") &&
             is_other_half(choice.inputs[1], y, a);
    });
    return found ? id : kNoNode;
  }

 private:
  NodeId maker(ValueId id, std::string_view op) const {
    const NodeId made = id == kNoValue ? kNoNode : graph_.value(id).producer;
    return made != kNoNode && is(graph_.node(made), op) ? made : kNoNode;
  }

  /// Whether `id` is v `op` 0, or 0 `mirrored` v.
  bool is_sign(ValueId id, ValueId v, std::string_view op, std::string_view mirrored) const {
    const auto compares = [&](std::string_view name, std::size_t at) {
      const NodeId node = maker(id, name);
      if (node == kNoNode) return false;
      const std::vector<ValueId>& inputs = graph_.node(node).inputs;
      return inputs.size() == 2 && inputs[at] == v && numbers_.is(inputs[1 - at], 0);
    };
    return compares(op, 0) || compares(mirrored, 1);
  }

  /// Whether `id` is what stands for x < 0: a + pi above, a - pi below.
  bool is_other_half(ValueId id, ValueId y, ValueId a) const {
    const NodeId choice = maker(id, kWhere);
    if (choice == kNoNode) return false;
    const std::vector<ValueId>& inputs = graph_.node(choice).inputs;
    const bool above =
        is_sign(inputs.at(0), y, "Greater", "Less") || is_sign(inputs[0], y, "GreaterOrEqual", "LessOrEqual");
    return above && is_turned(inputs.at(1), a, "Add", std::numbers::pi) &&
           (is_turned(inputs.at(2), a, "Sub", std::numbers::pi) || is_turned(inputs[2], a, "Add", -std::numbers::pi));
  }

  bool is_turned(ValueId id, ValueId a, std::string_view op, double by) const {
    const NodeId node = maker(id, op);
    if (node == kNoNode) return false;
    const std::vector<ValueId>& inputs = graph_.node(node).inputs;
    const bool swapped = op == "Add" && inputs.at(1) == a && numbers_.is(inputs[0], by);
    return swapped || (inputs.at(0) == a && numbers_.is(inputs.at(1), by));
  }

  const Graph& graph_;
  const Numbers numbers_;
  const std::vector<std::vector<NodeId>> consumers_;
};

/// x becomes 1 where both numbers are 0: 0 / 1 is 0.
void guard(Graph& graph, NodeId division, graph::GraphPatch& patch) {
  const Node& div = graph.node(division);
  const ValueId y = div.inputs[0], x = div.inputs[1];
  const std::int64_t opset = div.opset;
  const std::array from{division};
  const auto add = [&](const char* op, std::vector<ValueId> inputs, graph::Attributes attributes = {}) {
    Node node;
    node.op_type = op;
    node.opset = opset;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    const ValueId out = patch.add_value(op);
    node.outputs = {out};
    patch.add_node(std::move(node), from);
    return out;
  };
  graph::Attributes to_bool;
  to_bool.set("to", static_cast<std::int64_t>(tensor::DType::Bool));
  Tensor one = Tensor::make(graph.value(x).type.elem, {}, tensor::host_allocator());
  tensor::dispatch_floats(one.dtype(), "Div", [&]<class T>(tensor::TypeTag<T>) { *one.mutable_data<T>() = T(1.0f); });
  const ValueId some = add("Or", {add(kCast, {y}, to_bool), add(kCast, {x}, to_bool)});
  patch.set_input(division, 1, add(kWhere, {some, x, patch.add_constant("one", std::move(one))}));
}

bool guard_one(Graph& graph, const kernel::Registry& registry) {
  std::vector<NodeId> candidates;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.node_count()); ++id) {
    if (!graph.node(id).removed && is(graph.node(id), "Atan")) candidates.push_back(id);
  }
  if (candidates.empty()) return false;
  const ArcTangents arc_tangents(graph, registry);
  graph::GraphPatch patch(graph);
  for (const NodeId id : candidates) {
    const NodeId division = arc_tangents.division_of(graph.node(id));
    if (division != kNoNode && tensor::is_floating(graph.value(graph.node(division).inputs[1]).type.elem))
      guard(graph, division, patch);
  }
  if (patch.empty()) return false;
  patch.apply();
  return true;
}

}  // namespace

bool guard_arc_tangents(Graph& graph, const kernel::Registry& registry) {
  bool changed = guard_one(graph, registry);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.node_count()); ++id) {
    if (graph.node(id).removed) continue;
    for (const auto& body : graph::subgraphs(graph.node(id))) changed = guard_arc_tangents(*body, registry) || changed;
  }
  return changed;
}

}  // namespace infernode::passes
