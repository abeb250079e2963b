#include "passes/transposes/order.h"

#include <algorithm>

#include "passes/operators.h"

namespace infernode::passes::transposes {

namespace {
std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }
}  // namespace

bool is_identity(const Order& order) { return std::is_sorted(order.begin(), order.end()); }

Order inverse(const Order& order) {
  Order out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) out[at(order[i])] = static_cast<std::int64_t>(i);
  return out;
}

Order compose(const Order& first, const Order& second) {
  Order out;
  for (const std::int64_t axis : second) out.push_back(first[at(axis)]);
  return out;
}

Order drop(const Order& order, const std::vector<bool>& gone) {
  Order kept;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!gone[i]) kept.push_back(order[i]);
  }
  Order places = kept;
  std::sort(places.begin(), places.end());
  for (std::int64_t& axis : kept) axis = std::lower_bound(places.begin(), places.end(), axis) - places.begin();
  return kept;
}

graph::SymShape turned_shape(const graph::SymShape& shape, const Order& order) {
  if (order.empty()) return shape;
  graph::SymShape out(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) out[at(order[i])] = shape[i];
  return out;
}

bool moves_nothing(const graph::SymShape& shape, const Order& order) {
  std::int64_t last = -1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (shape[i].is(1)) continue;
    if (order[i] < last) return false;
    last = order[i];
  }
  return true;
}

Order settle(const graph::SymShape& shape, Order order) {
  const bool same = is_identity(order) || (moves_nothing(shape, order) && turned_shape(shape, order) == shape);
  return same ? Order() : order;
}

std::optional<Order> perm_of(const graph::Graph& graph, const graph::Node& node) {
  if (!is(node, kTranspose) || node.inputs.size() != 1 || node.outputs.size() != 1 ||
      node.inputs[0] == graph::kNoValue || node.outputs[0] == graph::kNoValue)
    return std::nullopt;
  const auto& shape = graph.value(node.inputs[0]).type.shape;
  if (!shape) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape->size());
  Order perm = node.attributes.get_ints("perm");
  if (!node.attributes.has("perm")) {
    for (std::int64_t axis = rank; axis-- > 0;) perm.push_back(axis);
  }
  for (std::int64_t& axis : perm) axis += axis < 0 ? rank : 0;
  Order sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool every = sorted.size() == shape->size();
  for (std::size_t i = 0; every && i < sorted.size(); ++i) every = sorted[i] == static_cast<std::int64_t>(i);
  return every ? std::optional(std::move(perm)) : std::nullopt;
}

bool is_constant(const graph::Graph& graph, graph::ValueId value) {
  while (!graph.value(value).is_constant()) {
    const graph::NodeId maker = graph.value(value).producer;
    if (maker == graph::kNoNode || !perm_of(graph, graph.node(maker))) return false;
    value = graph.node(maker).inputs[0];
  }
  return true;
}

}  // namespace infernode::passes::transposes
