// How nodes work in another order of axes, by what their operators say.

#include "passes/transposes/turning.h"

namespace infernode::passes::transposes {

namespace {

bool (*turn_of(kernel::Axes axes))(Turning&) {
  using kernel::Axes;
  switch (axes) {
    case Axes::Fixed:
      return nullptr;
    case Axes::Elementwise:
      return turn_elementwise;
    case Axes::Broadcast:
      return turn_broadcast;
    case Axes::Channels:
      return turn_channels;
    case Axes::BatchAndChannels:
      return turn_batch_and_channels;
    case Axes::Along:
      return turn_along;
    case Axes::AlongInput:
      return turn_along_input;
    case Axes::From:
      return turn_from;
    case Axes::Joined:
      return turn_joined;
    case Axes::Scaled:
      return turn_scaled;
    case Axes::Reduced:
      return turn_reduced;
    case Axes::ReducedOne:
      return turn_reduced_one;
    case Axes::Sliced:
      return turn_sliced;
    case Axes::Padded:
      return turn_padded;
    case Axes::Repeated:
      return turn_repeated;
    case Axes::Expanded:
      return turn_expanded;
    case Axes::Gathered:
      return turn_gathered;
    case Axes::GatheredElements:
      return turn_gathered_elements;
    case Axes::Squeezed:
      return turn_squeezed;
    case Axes::Unsqueezed:
      return turn_unsqueezed;
    case Axes::Reshaped:
      return turn_reshaped;
    case Axes::Dims:
      return turn_dims;
    case Axes::Count:
      return turn_count;
  }
  return nullptr;
}

}  // namespace

Rule rule_for(const graph::Node& node, const kernel::Registry& registry) {
  if (node.inputs.empty() || node.outputs.empty()) return {};
  const kernel::OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
  if (schema == nullptr) return {};
  return {schema, turn_of(schema->traits.axes), schema->traits.axes == kernel::Axes::Broadcast};
}

std::optional<Turning> turn(const graph::Graph& graph, const graph::Node& node, const Rule& rule, const Order& order) {
  const graph::ValueId leading = rule.leading_value(node);
  if (leading == graph::kNoValue) return std::nullopt;
  const auto known = [&](graph::ValueId id) {
    const graph::ValueType& type = graph.value(id).type;
    return type.is_tensor() && type.shape;
  };
  for (const graph::ValueId output : node.outputs) {
    if (output == graph::kNoValue || !known(output)) return std::nullopt;
  }
  if (!known(leading) || graph.value(leading).type.shape->size() != order.size()) return std::nullopt;
  Turning t(graph, *rule.schema, node, order);
  if (!rule.turn(t)) return std::nullopt;
  const auto settled = [&](std::vector<Order>& orders, const std::vector<graph::ValueId>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (orders[i].empty()) continue;
      if (!known(values[i]) || graph.value(values[i]).type.shape->size() != orders[i].size()) return false;
      orders[i] = settle(*graph.value(values[i]).type.shape, std::move(orders[i]));
    }
    return true;
  };
  return settled(t.inputs, node.inputs) && settled(t.outputs, node.outputs) ? std::optional(std::move(t))
                                                                            : std::nullopt;
}

}  // namespace infernode::passes::transposes
