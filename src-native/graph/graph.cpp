#include "graph/graph.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/append.h"

namespace infernode::graph {
namespace {

template <class F>
void for_each_subgraph(const Node& node, F&& f) {
  for (const auto& [name, attribute] : node.attributes) {
    if (const auto* g = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
      if (*g) f(*g);
    } else if (const auto* list = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
      for (const auto& item : *list)
        if (item) f(item);
    }
  }
}

/// All values that a node reads, captures of its subgraphs included.
template <class F>
void for_each_use(const Node& node, F&& f) {
  for (ValueId v : node.inputs)
    if (v != kNoValue) f(v);
  for_each_subgraph(node, [&](const std::shared_ptr<Graph>& g) {
    for (const Capture& c : g->captures()) f(c.outer);
  });
}

}  // namespace

ValueId Graph::add_value(std::string value_name, ValueType type) {
  if (value_name.empty()) value_name = unique_name("value");
  const auto id = static_cast<ValueId>(values_.size());
  const auto [at, added] = by_name_.emplace(value_name, id);
  if (!added)
    fail(ErrorCode::InvalidModel, cat("the name '", value_name, "' is defined more than once in graph '", name, "'"));
  ValueInfo info;
  info.name = std::move(value_name);
  info.type = std::move(type);
  append(values_, std::move(info));
  return id;
}

ValueId Graph::add_constant(std::string value_name, tensor::Value value) {
  ValueType type;
  if (value.is_tensor())
    type = ValueType::tensor(value.tensor().dtype(), to_sym(value.tensor().shape()));
  else if (value.is_sparse())
    type = ValueType::sparse_tensor(value.sparse().values.dtype(), to_sym(value.sparse().shape));
  const ValueId id = add_value(std::move(value_name), std::move(type));
  this->value(id).constant = std::move(value);
  return id;
}

NodeId Graph::add_node(Node node) {
  const auto id = static_cast<NodeId>(nodes_.size());
  for (ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    ValueInfo& info = value(v);
    INFERNODE_CHECK(info.producer == kNoNode, ErrorCode::InvalidModel, "value '", info.name, "' is produced twice: by ",
                    describe(*this, this->node(info.producer)), " and by ", describe(*this, node));
    info.producer = id;
  }
  append(nodes_, std::move(node));
  return id;
}

void Graph::add_input(ValueId id) {
  value(id).is_input = true;
  inputs_.push_back(id);
}

void Graph::add_output(ValueId id) { outputs_.push_back(id); }
void Graph::add_capture(Capture capture) { captures_.push_back(capture); }

ValueId Graph::find_value(std::string_view value_name) const {
  const auto at = by_name_.find(value_name);
  return at == by_name_.end() ? kNoValue : at->second;
}

std::string Graph::unique_name(std::string_view hint) const {
  if (!hint.empty() && !by_name_.contains(hint)) return std::string(hint);
  for (size_t n = values_.size();; ++n) {
    std::string candidate = cat(hint.empty() ? "value" : hint, "_", n);
    if (!by_name_.contains(candidate)) return candidate;
  }
}

std::vector<NodeId> Graph::topological_order() const {
  enum class Mark : uint8_t { New, Open, Done };
  std::vector<Mark> marks(nodes_.size(), Mark::New);
  std::vector<NodeId> order;
  order.reserve(nodes_.size());
  struct Visit {
    NodeId node;
    std::vector<NodeId> producers;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  const auto open = [&](NodeId id) {
    marks[static_cast<size_t>(id)] = Mark::Open;
    Visit visit{id, {}, 0};
    for_each_use(nodes_[static_cast<size_t>(id)], [&](ValueId v) {
      const NodeId p = value(v).producer;
      if (p != kNoNode && !node(p).removed) visit.producers.push_back(p);
    });
    stack.push_back(std::move(visit));
  };
  for (size_t root = 0; root < nodes_.size(); ++root) {
    if (nodes_[root].removed || marks[root] != Mark::New) continue;
    open(static_cast<NodeId>(root));
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next == top.producers.size()) {
        marks[static_cast<size_t>(top.node)] = Mark::Done;
        order.push_back(top.node);
        stack.pop_back();
        continue;
      }
      const NodeId p = top.producers[top.next++];
      const Mark mark = marks[static_cast<size_t>(p)];
      if (mark == Mark::Open) {
        ErrorContext context;
        context.node = node(p).name;
        context.op_type = node(p).op_type;
        fail(ErrorCode::InvalidModel, cat("the graph '", name, "' has a cycle through node ", describe(*this, node(p))),
             std::move(context));
      }
      if (mark == Mark::New) open(p);
    }
  }
  return order;
}

std::vector<std::vector<NodeId>> Graph::consumers() const {
  std::vector<std::vector<NodeId>> out(values_.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].removed) continue;
    for_each_use(nodes_[n], [&](ValueId v) { out.at(static_cast<size_t>(v)).push_back(static_cast<NodeId>(n)); });
  }
  return out;
}

bool Graph::is_output(ValueId id) const { return std::ranges::find(outputs_, id) != outputs_.end(); }

void Graph::compact() {
  for (const Node& node : nodes_) {
    if (!node.removed) for_each_subgraph(node, [](const std::shared_ptr<Graph>& g) { g->compact(); });
  }
  std::vector<bool> used(values_.size(), false);
  const auto use = [&](ValueId v) {
    if (v != kNoValue) used.at(static_cast<size_t>(v)) = true;
  };
  for (const Node& node : nodes_) {
    if (node.removed) continue;
    for_each_use(node, use);
    for (ValueId v : node.outputs) use(v);
  }
  for (ValueId v : inputs_) use(v);
  for (ValueId v : outputs_) use(v);
  std::erase_if(captures_, [&](const Capture& c) { return !used.at(static_cast<size_t>(c.inner)); });

  std::vector<ValueId> new_value(values_.size(), kNoValue);
  std::vector<ValueInfo> values;
  for (size_t v = 0; v < values_.size(); ++v) {
    if (!used[v]) {
      by_name_.erase(values_[v].name);
      continue;
    }
    new_value[v] = static_cast<ValueId>(values.size());
    by_name_.find(values_[v].name)->second = new_value[v];
    values.push_back(std::move(values_[v]));
    values.back().producer = kNoNode;
  }
  const auto map = [&](ValueId& v) {
    if (v != kNoValue) v = new_value[static_cast<size_t>(v)];
  };
  std::vector<Node> nodes;
  for (Node& node : nodes_) {
    if (node.removed) continue;
    for (ValueId& v : node.inputs) map(v);
    for (ValueId& v : node.outputs) {
      map(v);
      if (v != kNoValue) values[static_cast<size_t>(v)].producer = static_cast<NodeId>(nodes.size());
    }
    for_each_subgraph(node, [&](const std::shared_ptr<Graph>& g) {
      for (Capture& c : g->mutable_captures()) map(c.outer);
    });
    nodes.push_back(std::move(node));
  }
  values_ = std::move(values);
  nodes_ = std::move(nodes);
  for (ValueId& v : inputs_) map(v);
  for (ValueId& v : outputs_) map(v);
  for (Capture& c : captures_) map(c.inner);
}

std::shared_ptr<Graph> Graph::clone() const {
  auto out = std::make_shared<Graph>(*this);
  for (Node& node : out->nodes_) {
    Attributes attributes;
    for (auto [name, attribute] : node.attributes) {
      if (auto* g = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
        if (*g) *g = (*g)->clone();
      } else if (auto* list = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
        for (auto& item : *list)
          if (item) item = item->clone();
      }
      attributes.set(std::move(name), std::move(attribute));
    }
    node.attributes = std::move(attributes);
  }
  return out;
}

std::vector<std::shared_ptr<Graph>> subgraphs(const Node& node) {
  std::vector<std::shared_ptr<Graph>> out;
  for_each_subgraph(node, [&](const std::shared_ptr<Graph>& g) { out.push_back(g); });
  return out;
}

std::vector<ValueId> implicit_inputs(const Node& node) {
  std::vector<ValueId> out;
  for_each_subgraph(node, [&](const std::shared_ptr<Graph>& g) {
    for (const Capture& c : g->captures()) out.push_back(c.outer);
  });
  return out;
}

std::string describe(const Graph& graph, const Node& node) {
  const std::string op = node.domain.empty() ? node.op_type : cat(node.domain, ".", node.op_type);
  if (!node.name.empty()) return cat(op, " '", node.name, "'");
  for (ValueId v : node.outputs)
    if (v != kNoValue) return cat(op, " producing '", graph.value(v).name, "'");
  return op;
}

}  // namespace infernode::graph
