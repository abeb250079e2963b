#include "passes/transposes/region.h"

#include <algorithm>
#include <compare>

#include "passes/transposes/cost.h"
#include "passes/transposes/min_cut.h"

namespace infernode::passes::transposes {

using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

const Order* Region::order_of(ValueId value) const {
  const auto at = places_.find(value);
  return at == places_.end() ? nullptr : &at->second.order;
}

void Region::assign(ValueId value, const Order& order) {
  const NodeId maker = graph_.value(value).producer;
  const bool transposed = maker != kNoNode && perm_of(graph_, graph_.node(maker));
  const bool foreign = transposed && order_of(graph_.node(maker).inputs[0]) != nullptr;
  if (places_.emplace(value, Place{order, foreign}).second) open_.push_back(value);
}

bool Region::grow(ValueId seed, const Order& order) {
  const auto& shape = graph_.value(seed).type.shape;
  if (!graph_.value(seed).type.is_tensor() || !shape || shape->size() != order.size()) return false;
  const Order settled = settle(*shape, order);
  if (settled.empty()) return false;
  assign(seed, settled);
  while (!open_.empty() && budget_.nodes > 0) {
    const ValueId value = open_.back();
    open_.pop_back();
    const NodeId maker = graph_.value(value).producer;
    if (maker != kNoNode) admit(maker);
    for (const NodeId reader : consumers_[static_cast<std::size_t>(value)]) admit(reader);
  }
  return budget_.nodes > 0 && !nodes_.empty();
}

void Region::admit(NodeId id) {
  const Node& node = graph_.node(id);
  const Rule rule = rule_for(node, registry_);
  if (!rule || budget_.nodes == 0 || nodes_.contains(id)) return;
  --budget_.nodes;
  for (const Order& order : candidates(node, rule.leading_value(node))) {
    std::optional<Turning> turning = turn(graph_, node, rule, order);
    if (!turning || !fits(*turning)) continue;
    const Turning& member = nodes_.emplace(id, std::move(*turning)).first->second;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!member.inputs[i].empty()) assign(node.inputs[i], member.inputs[i]);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!member.outputs[i].empty()) assign(node.outputs[i], member.outputs[i]);
    }
    return;
  }
}

/// Orders that the leading value may have, so that the node's values with an order have that one.
std::vector<Order> Region::candidates(const Node& node, ValueId leading) const {
  if (leading == kNoValue) return {};
  if (const Order* own = order_of(leading)) return {*own};
  const auto& shape = graph_.value(leading).type.shape;
  if (!shape) return {};
  std::vector<Order> out;
  const auto add = [&](const Order& order) {
    if (order.size() == shape->size() && std::find(out.begin(), out.end(), order) == out.end()) out.push_back(order);
  };
  const auto add_all = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      const Order* order = value == kNoValue ? nullptr : order_of(value);
      if (order != nullptr) add(*order);
    }
  };
  const NodeId maker = graph_.value(leading).producer;
  if (const auto perm = maker == kNoNode ? std::nullopt : perm_of(graph_, graph_.node(maker))) add(*perm);
  add_all(node.outputs);
  add_all(node.inputs);
  return out;
}

/// Whether the values' orders agree with those that they have, and at least one does.
bool Region::fits(const Turning& turning) const {
  bool touches = false;
  std::map<ValueId, const Order*> own;
  const auto agree = [&](const std::vector<ValueId>& values, const std::vector<Order>& orders) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (orders[i].empty()) continue;
      const Order* placed = order_of(values[i]);
      if (placed != nullptr && *placed != orders[i]) return false;
      const auto [at, fresh] = own.emplace(values[i], &orders[i]);
      if (!fresh && *at->second != orders[i]) return false;
      touches = touches || placed != nullptr;
    }
    return true;
  };
  const Node& old = turning.node;
  return agree({old.inputs.begin(), old.inputs.begin() + static_cast<std::ptrdiff_t>(turning.inputs.size())},
               turning.inputs) &&
         agree(old.outputs, turning.outputs) && touches;
}

Region::Source Region::source_of(ValueId value) const {
  const graph::ValueInfo& info = graph_.value(value);
  if (is_constant(graph_, value)) return Source::Constant;
  if (info.producer == kNoNode || info.is_input) return Source::Outside;
  const Place& place = places_.at(value);
  if (const auto member = nodes_.find(info.producer); member != nodes_.end()) {
    const auto& outputs = member->second.node.outputs;
    const auto index = static_cast<std::size_t>(std::find(outputs.begin(), outputs.end(), value) - outputs.begin());
    return member->second.outputs[index] == place.order ? Source::Member : Source::Outside;
  }
  const auto perm = perm_of(graph_, graph_.node(info.producer));
  if (!perm || place.foreign) return Source::Outside;
  return *perm == place.order ? Source::Begin : Source::Transpose;
}

Region::Reader Region::reader_of(ValueId value, NodeId reader) const {
  const Node& node = graph_.node(reader);
  const auto perm = perm_of(graph_, node);
  if (!perm) return Reader::Original;
  const auto output = places_.find(node.outputs[0]);
  if (output != places_.end() && !output->second.foreign) return Reader::Original;
  return *perm == inverse(places_.at(value).order) ? Reader::End : Reader::Either;
}

Region::Needs Region::needs_of(ValueId value) const {
  Needs needs;
  needs.original = graph_.is_output(value);
  for (const NodeId reader : consumers_[static_cast<std::size_t>(value)]) {
    const auto member = nodes_.find(reader);
    if (member == nodes_.end()) {
      const Reader how = reader_of(value, reader);
      needs.turned = needs.turned || how == Reader::End;
      needs.original = needs.original || how == Reader::Original;
      continue;
    }
    const Turning& turning = member->second;
    const std::vector<ValueId>& inputs = graph_.node(reader).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != value) continue;
      const bool turned = turns(reader) && !turning.inputs[i].empty();
      (turned ? needs.turned : needs.original) = true;
    }
  }
  return needs;
}

bool Region::is_view(ValueId value, const Order& order) const {
  return moves_nothing(*graph_.value(value).type.shape, order);
}

bool Region::widening_moves(const Turning& turning, std::size_t input, const Order& order) const {
  const graph::ValueInfo& value = graph_.value(turning.node.inputs[input]);
  const auto first = order.end() - static_cast<std::ptrdiff_t>(value.type.shape->size());
  return !is_constant(graph_, turning.node.inputs[input]) && !std::is_sorted(first, order.end());
}

/// The transposes of the region's values, as chosen.
std::vector<Region::Move> Region::moves() const {
  std::vector<Move> out;
  for (const auto& [value, place] : places_) {
    const Needs needs = needs_of(value);
    const Source source = source_of(value);
    const bool turned = source == Source::Begin || (source == Source::Member && turns(graph_.value(value).producer));
    if (source == Source::Transpose) {
      const Order perm = *perm_of(graph_, graph_.node(graph_.value(value).producer));
      if (needs.original) out.push_back({value, is_view(value, perm)});
      const graph::SymShape turned = turned_shape(*graph_.value(value).type.shape, place.order);
      if (needs.turned) out.push_back({value, moves_nothing(turned, compose(perm, inverse(place.order)))});
    } else if (source != Source::Constant && (turned ? needs.original : needs.turned)) {
      out.push_back({value, is_view(value, place.order)});
    }
  }
  for (const NodeId id : chosen_) {
    const Turning& turning = nodes_.at(id);
    for (const auto& [input, order] : turning.widened) {
      if (widening_moves(turning, input, order)) out.push_back({turning.node.inputs[input], false});
    }
  }
  return out;
}

std::int64_t Region::cost(const Move& move, std::int64_t per_node) const {
  constexpr std::int64_t kView = 64;
  return move.view ? kView : per_node + usual_bytes(graph_.value(move.value).type);
}

/// Chooses the nodes whose turning makes the sum of all costs the smallest.
void Region::cut(std::int64_t per_node) {
  MinCut network;
  std::map<NodeId, std::size_t> vertex;
  for (const auto& [id, turning] : nodes_) vertex[id] = network.add_vertex();
  for (const auto& [value, place] : places_) {
    // The source's side: a turned node; a turned version that is needed; an original that is not.
    const std::size_t turned = network.add_vertex(), spared = network.add_vertex();
    const std::int64_t price = cost({value, is_view(value, place.order)}, per_node);
    switch (source_of(value)) {
      case Source::Constant:
        break;
      case Source::Member:
        network.add_arc(turned, vertex[graph_.value(value).producer], price);
        network.add_arc(vertex[graph_.value(value).producer], spared, price);
        break;
      case Source::Begin:
        network.add_arc(MinCut::kSource, spared, price);
        break;
      case Source::Transpose:
        network.add_arc(turned, MinCut::kSink, price);
        network.add_arc(MinCut::kSource, spared, price);
        break;
      case Source::Outside:
        network.add_arc(turned, MinCut::kSink, price);
        break;
    }
    if (graph_.is_output(value)) network.add_arc(spared, MinCut::kSink, MinCut::kNever);
    for (const NodeId reader : consumers_[static_cast<std::size_t>(value)]) {
      const auto member = nodes_.find(reader);
      if (member == nodes_.end()) {
        const Reader how = reader_of(value, reader);
        if (how == Reader::End) network.add_arc(MinCut::kSource, turned, MinCut::kNever);
        if (how == Reader::Original) network.add_arc(spared, MinCut::kSink, MinCut::kNever);
        continue;
      }
      const std::vector<ValueId>& inputs = graph_.node(reader).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] != value) continue;
        const bool follows = !member->second.inputs[i].empty();
        if (follows) network.add_arc(vertex[reader], turned, MinCut::kNever);
        network.add_arc(spared, follows ? vertex[reader] : MinCut::kSink, MinCut::kNever);
      }
    }
  }
  for (const auto& [id, turning] : nodes_) {
    for (const auto& [input, order] : turning.widened) {
      if (widening_moves(turning, input, order))
        network.add_arc(vertex[id], MinCut::kSink, cost({turning.node.inputs[input], false}, per_node));
    }
  }
  const std::vector<bool> side = network.solve(budget_.arcs);
  chosen_.clear();
  if (side.empty()) {
    budget_.nodes = 0;  // a smaller region would be as hard
    return;
  }
  for (const auto& [id, at] : vertex) {
    if (side[at]) chosen_.insert(id);
  }
}

bool Region::choose() {
  struct Total {
    std::vector<graph::Dim> sizes;
    std::size_t views = 0;
  };
  const auto total = [&] {
    Total out;
    for (const Move& move : moves()) {
      if (move.view)
        ++out.views;
      else
        out.sizes.push_back(bits_of(graph_.value(move.value).type));
    }
    return out;
  };
  chosen_.clear();
  const Total before = total();
  // A transpose costs as much as the moving of so many bytes; failing that, the fewest transposes.
  for (const std::int64_t per_node : {std::int64_t{1} << 12, std::int64_t{1} << 40}) {
    cut(per_node);
    if (chosen_.empty()) continue;
    const Total now = total();
    const std::strong_ordering order = compare(now.sizes, before.sizes);
    if (order < 0 || (order == 0 && now.views < before.views)) return true;
  }
  chosen_.clear();
  return false;
}

}  // namespace infernode::passes::transposes
