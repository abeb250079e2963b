#include "graph/patch.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "graph/append.h"

namespace infernode::graph {

ValueId GraphPatch::add_value(std::string_view name_hint, ValueType type) {
  ++edits_;
  return graph_.add_value(graph_.unique_name(name_hint), std::move(type));
}

ValueId GraphPatch::add_constant(std::string_view name_hint, tensor::Value value) {
  ++edits_;
  return graph_.add_constant(graph_.unique_name(name_hint), std::move(value));
}

NodeId GraphPatch::add_node(Node node, std::span<const NodeId> from) {
  ++edits_;
  for (NodeId id : from) {
    const Node& source = graph_.node(id);
    std::vector<std::string> names = source.provenance;
    if (names.empty() && !source.name.empty()) names.push_back(source.name);
    for (std::string& n : names)
      if (std::ranges::find(node.provenance, n) == node.provenance.end()) node.provenance.push_back(std::move(n));
  }
  // Its outputs may still belong to nodes that this patch removes: it comes to life in apply().
  node.removed = true;
  const auto id = static_cast<NodeId>(graph_.nodes_.size());
  append(graph_.nodes_, std::move(node));
  added_.push_back(id);
  return id;
}

void GraphPatch::remove_node(NodeId id) {
  ++edits_;
  removed_.push_back(id);
}

void GraphPatch::replace_uses(ValueId from, ValueId to) {
  ++edits_;
  replacements_.push_back({from, to});
}

void GraphPatch::set_input(NodeId node, size_t index, ValueId to) {
  ++edits_;
  input_edits_.push_back({node, index, to});
}

void GraphPatch::fold(ValueId value, tensor::Value constant) {
  ++edits_;
  folds_.push_back({value, std::move(constant)});
}

void GraphPatch::enter(NodeId id) {
  if (consumers_ == nullptr) return;
  const auto add = [&](ValueId v) {
    std::vector<NodeId>& readers = consumers_->at(static_cast<size_t>(v));
    readers.insert(std::ranges::upper_bound(readers, id), id);
  };
  const Node& node = graph_.node(id);
  for (ValueId v : node.inputs)
    if (v != kNoValue) add(v);
  for (ValueId v : implicit_inputs(node)) add(v);
}

void GraphPatch::leave(NodeId id) {
  if (consumers_ == nullptr) return;
  const Node& node = graph_.node(id);
  const auto drop = [&](ValueId v) {
    std::vector<NodeId>& readers = consumers_->at(static_cast<size_t>(v));
    const auto [first, last] = std::equal_range(readers.begin(), readers.end(), id);
    readers.erase(first, last);
  };
  for (ValueId v : node.inputs)
    if (v != kNoValue) drop(v);
  for (ValueId v : implicit_inputs(node)) drop(v);
}

void GraphPatch::apply(Consumers* consumers) {
  consumers_ = consumers;
  if (consumers != nullptr) consumers->resize(graph_.values_.size());
  edits_ = 0;
  for (NodeId id : removed_) {
    Node& node = graph_.node(id);
    if (!node.removed) leave(id);
    node.removed = true;
    for (ValueId v : node.outputs)
      if (v != kNoValue && graph_.value(v).producer == id) graph_.value(v).producer = kNoNode;
  }
  for (NodeId id : added_) {
    Node& node = graph_.node(id);
    if (std::ranges::find(removed_, id) != removed_.end()) continue;
    node.removed = false;
    enter(id);
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      ValueInfo& info = graph_.value(v);
      INFERNODE_CHECK(info.producer == kNoNode || info.producer == id, ErrorCode::Internal, "a patch makes ",
                      describe(graph_, node), " produce '", info.name, "', which ",
                      describe(graph_, graph_.node(info.producer)), " still produces");
      info.producer = id;
    }
  }
  for (const InputEdit& edit : input_edits_) {
    Node& node = graph_.node(edit.node);
    if (!node.removed) leave(edit.node);
    node.inputs.at(edit.index) = edit.to;
    if (!node.removed) enter(edit.node);
  }
  for (Fold& fold : folds_) apply_fold(fold.value, std::move(fold.constant));
  apply_replacements();
  if (consumers != nullptr) consumers->resize(graph_.values_.size());
}

void GraphPatch::detach(ValueId value) {
  const NodeId producer = graph_.value(value).producer;
  if (producer == kNoNode) return;
  graph_.value(value).producer = kNoNode;
  Node& node = graph_.node(producer);
  const bool alone = std::ranges::all_of(node.outputs, [&](ValueId v) { return v == kNoValue || v == value; });
  if (alone) {
    if (!node.removed) leave(producer);
    node.removed = true;
    return;
  }
  // The slot stays filled: few operators allow an output that is not last to be absent.
  const ValueId unused =
      graph_.add_value(graph_.unique_name(graph_.value(value).name + "_unused"), graph_.value(value).type);
  graph_.value(unused).producer = producer;
  std::ranges::replace(node.outputs, value, unused);
}

void GraphPatch::apply_fold(ValueId value, tensor::Value constant) {
  detach(value);
  ValueInfo& info = graph_.value(value);
  if (constant.is_tensor()) info.type = ValueType::tensor(constant.tensor().dtype(), to_sym(constant.tensor().shape()));
  info.constant = std::move(constant);
}

void GraphPatch::apply_replacements() {
  if (replacements_.empty()) return;
  std::unordered_map<ValueId, ValueId> to;
  for (const Replacement& r : replacements_)
    if (r.from != r.to) to[r.from] = r.to;
  // Replacements chain; one that leads back to its start means nothing.
  const auto target = [&](ValueId v) {
    for (size_t steps = 0; steps <= to.size(); ++steps) {
      const auto at = to.find(v);
      if (at == to.end()) return v;
      v = at->second;
    }
    fail(ErrorCode::Internal, cat("a patch replaces '", graph_.value(v).name, "' in a circle"));
  };
  const auto redirect = [&](NodeId id) {
    Node& node = graph_.node(id);
    for (ValueId& v : node.inputs)
      if (v != kNoValue) v = target(v);
    for (const auto& subgraph : subgraphs(node))
      for (Capture& c : subgraph->mutable_captures()) c.outer = target(c.outer);
  };
  if (consumers_ != nullptr) {
    for (const auto& [from, now] : to) {
      for (const NodeId reader : std::vector<NodeId>(consumers_->at(static_cast<size_t>(from)))) {
        leave(reader);
        redirect(reader);
        enter(reader);
      }
    }
  } else {
    for (size_t n = 0; n < graph_.nodes_.size(); ++n) {
      if (!graph_.nodes_[n].removed) redirect(static_cast<NodeId>(n));
    }
  }
  for (const Replacement& r : replacements_)
    if (graph_.is_output(r.from) && target(r.from) != r.from) replace_output(r.from, target(r.from));
}

namespace {

/// Dims of an output that its declaration alone may tell: a body that never runs says them by nothing else.
void keep_lengths(ValueType& type, const ValueType& output) {
  if (type.kind != output.kind || !output.shape) return;
  if (!type.shape) type.shape = output.shape;
  if (type.shape->size() != output.shape->size()) return;
  for (size_t i = 0; i < type.shape->size(); ++i) {
    Dim& dim = (*type.shape)[i];
    if (!dim.known() && (*output.shape)[i].known()) dim = (*output.shape)[i];
  }
}

}  // namespace

void GraphPatch::replace_output(ValueId from, ValueId to) {
  ValueInfo &old = graph_.value(from), &now = graph_.value(to);
  const bool movable =
      now.producer != kNoNode && !now.is_input && !now.has_constant() && !graph_.is_output(to) && !old.is_input;
  if (movable) {
    std::swap(old.name, now.name);
    graph_.by_name_.find(old.name)->second = from;
    graph_.by_name_.find(now.name)->second = to;
    std::ranges::replace(graph_.outputs_, from, to);
    keep_lengths(now.type, old.type);
    return;
  }
  int64_t opset = 0;
  for (const Node& node : graph_.nodes_)
    if (node.domain.empty()) opset = std::max(opset, node.opset);
  Node identity;
  identity.op_type = "Identity";
  identity.opset = opset > 0 ? opset : 13;
  identity.inputs = {to};
  identity.outputs = {from};
  if (const NodeId producer = old.producer; producer != kNoNode) {
    const Node& source = graph_.node(producer);
    identity.provenance = source.provenance;
    if (identity.provenance.empty() && !source.name.empty()) identity.provenance = {source.name};
  }
  detach(from);
  graph_.value(from).constant = {};
  const NodeId added = graph_.add_node(std::move(identity));
  enter(added);
}

}  // namespace infernode::graph
