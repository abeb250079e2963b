// A region's chosen nodes turned: what is read, the nodes themselves, and what others read of them.

#include <algorithm>

#include "passes/operators.h"
#include "passes/transposes/region.h"

namespace infernode::passes::transposes {

using graph::GraphPatch;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

namespace {

/// That of the standard's nodes: where nodes turn there is a Transpose or a Reshape among them.
std::int64_t standard_version(const graph::Graph& graph) {
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(static_cast<NodeId>(i));
    if (!node.removed && node.domain.empty()) return node.opset;
  }
  fail(ErrorCode::Internal, "no node of the standard's domain beside those that are turned");
}

ValueId add_axes(GraphPatch& patch, const std::string& name, const std::vector<std::int64_t>& axes) {
  return patch.add_constant(name, tensor::Tensor::of<std::int64_t>({static_cast<std::int64_t>(axes.size())},
                                                                   std::span<const std::int64_t>(axes)));
}

/// A node of the standard beside another; of the graph's version, where that one is of another domain.
Node node_like(const graph::Graph& graph, const Node& like, const char* op, std::vector<ValueId> inputs,
               ValueId output) {
  Node node;
  node.op_type = op;
  node.opset = like.domain.empty() ? like.opset : standard_version(graph);
  node.provider = like.provider;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  return node;
}

}  // namespace

ValueId Region::add_transpose(GraphPatch& patch, const Node& like, ValueId from, ValueId to, const Order& perm) const {
  Node node = node_like(graph_, like, kTranspose, {from}, to);
  node.attributes.set("perm", perm);
  patch.add_node(std::move(node));
  return to;
}

/// A new value for the turned version.
ValueId Region::turned_type(GraphPatch& patch, ValueId value) const {
  const graph::ValueInfo& old = graph_.value(value);
  const Order* order = order_of(value);
  graph::ValueType type = old.type;
  if (order != nullptr) type.shape = turned_shape(*type.shape, *order);
  return patch.add_value(old.name + "_turned", std::move(type));
}

/// Sees to the turned version of a value where somebody reads it, or its node makes it.
void Region::find_turned(GraphPatch& patch, ValueId value) {
  const Order order = places_.at(value).order;
  const NodeId maker = graph_.value(value).producer;
  const Source source = source_of(value);
  const bool made = source == Source::Member && turns(maker);
  if (!made && !needs_of(value).turned) return;
  const Node& like = nodes_.at(*chosen_.begin()).node;
  std::vector<NodeId> ends;
  for (const NodeId reader : consumers_[static_cast<std::size_t>(value)]) {
    if (!nodes_.contains(reader) && reader_of(value, reader) == Reader::End) ends.push_back(reader);
  }
  ValueId turned = kNoValue;
  if (made) {
    turned = turned_type(patch, value);
  } else if (source == Source::Begin) {
    turned = graph_.node(maker).inputs[0];
  } else if (source == Source::Transpose) {
    const Order perm = compose(*perm_of(graph_, graph_.node(maker)), inverse(order));
    turned = add_transpose(patch, like, graph_.node(maker).inputs[0], turned_type(patch, value), perm);
  } else if (!ends.empty()) {
    turned = graph_.node(ends.front()).outputs[0];
  } else {
    turned = add_transpose(patch, like, value, turned_type(patch, value), inverse(order));
  }
  turned_[value] = turned;
  for (const NodeId end : ends) {
    const ValueId output = graph_.node(end).outputs[0];
    if (output == turned) continue;
    patch.replace_uses(output, turned);
    patch.remove_node(end);
  }
}

/// An input of lower rank with dims of 1 between its own, where those come to stand apart.
ValueId Region::widen(GraphPatch& patch, const Turning& turning, std::size_t input, const Order& order) const {
  const ValueId value = turning.node.inputs[input];
  const std::string name = graph_.value(value).name;
  const graph::SymShape& shape = *graph_.value(value).type.shape;
  const std::size_t first = order.size() - shape.size();
  const bool moves = !std::is_sorted(order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  // The axes that its dims take; all those before the first one may be left out where none change places.
  Order places(order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  if (moves) {
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(first + i);
  }
  const std::int64_t skipped = moves ? 0 : places.front();
  std::vector<std::int64_t> ones;
  graph::SymShape dims;
  for (std::int64_t axis = skipped, next = 0; axis < static_cast<std::int64_t>(order.size()); ++axis) {
    const bool own = next < static_cast<std::int64_t>(places.size()) && places[static_cast<std::size_t>(next)] == axis;
    if (!own) ones.push_back(axis - skipped);
    dims.push_back(own ? shape[static_cast<std::size_t>(next++)] : graph::Dim(1));
  }
  graph::ValueType type = graph_.value(value).type;
  type.shape = dims;
  ValueId whole = kNoValue;
  const std::string hint = name + (moves ? "_whole" : "_turned");
  if (graph_.value(value).is_constant()) {
    const tensor::Tensor constant = graph_.value(value).constant.tensor();
    whole = patch.add_constant(hint, constant.reshaped(*graph::to_known(dims)));
  } else {
    whole = patch.add_value(hint, type);
    Node node = node_like(graph_, turning.node, kUnsqueeze, {value}, whole);
    if (node.opset < 13)
      node.attributes.set("axes", ones);
    else
      node.inputs.push_back(add_axes(patch, name + "_axes", ones));
    patch.add_node(std::move(node));
  }
  if (!moves) return whole;
  type.shape = turned_shape(dims, order);
  return add_transpose(patch, turning.node, whole, patch.add_value(name + "_turned", type), inverse(order));
}

void Region::turn_node(GraphPatch& patch, NodeId id) {
  const Turning& turning = nodes_.at(id);
  const std::vector<ValueId> old = graph_.node(id).inputs;
  Node node = turning.node;
  node.provenance.clear();
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (!turning.inputs[i].empty()) node.inputs[i] = turned_.at(old[i]);
  }
  for (const auto& [input, order] : turning.widened) node.inputs[input] = widen(patch, turning, input, order);
  const std::string result = graph_.value(node.outputs[0]).name;
  for (const auto& [input, constant] : turning.constants) {
    const bool replaces = input < old.size() && old[input] != kNoValue;
    node.inputs[input] =
        patch.add_constant(replaces ? graph_.value(old[input]).name + "_turned" : result + "_axes", constant);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!turning.outputs[i].empty()) node.outputs[i] = turned_.at(node.outputs[i]);
  }
  const NodeId from[] = {id};
  if (turning.picks) {
    const ValueId all = patch.add_value(
        result + "_turned", graph::ValueType::tensor(tensor::DType::Int64, graph::SymShape{turning.rank()}));
    const ValueId places = add_axes(patch, result + "_places", *turning.picks);
    patch.add_node(node_like(graph_, node, kGather, {all, places}, node.outputs[0]), from);
    node.outputs[0] = all;
  }
  patch.remove_node(id);
  patch.add_node(std::move(node), from);
}

/// Readers of the original version get it from the turned one; Transposes read whichever is there.
void Region::give_back(GraphPatch& patch, ValueId value) {
  const auto turned = turned_.find(value);
  if (turned == turned_.end()) return;
  const Order order = places_.at(value).order;
  const NodeId maker = graph_.value(value).producer;
  const Source source = source_of(value);
  const bool made = source == Source::Member && turns(maker);
  if (!made && source != Source::Begin && source != Source::Transpose) return;
  if (needs_of(value).original) {
    if (made) add_transpose(patch, nodes_.at(maker).node, turned->second, value, order);
    return;
  }
  for (const NodeId reader : consumers_[static_cast<std::size_t>(value)]) {
    if (nodes_.contains(reader) || reader_of(value, reader) != Reader::Either) continue;
    Node node = graph_.node(reader);
    node.inputs[0] = turned->second;
    node.attributes.set("perm", compose(order, *perm_of(graph_, graph_.node(reader))));
    const NodeId from[] = {reader};
    patch.remove_node(reader);
    patch.add_node(std::move(node), from);
  }
  if (!made) patch.remove_node(maker);
}

void Region::apply(graph::Graph& graph) {
  GraphPatch patch(graph);
  for (const auto& [value, place] : places_) find_turned(patch, value);
  for (const NodeId id : chosen_) turn_node(patch, id);
  for (const auto& [value, place] : places_) give_back(patch, value);
  patch.apply();
}

}  // namespace infernode::passes::transposes
