#include "graph/walks.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "graph/patch.h"
#include "graph/uses.h"

namespace infernode::graph {

std::vector<NodeId> topological_order(const Graph& graph, Look look) {
  enum class Mark : uint8_t { New, Open, Done };
  std::vector<Mark> marks(graph.node_count(), Mark::New);
  std::vector<NodeId> order;
  order.reserve(graph.node_count());
  struct Visit {
    NodeId node;
    std::vector<NodeId> producers;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  Steps steps(look);
  const auto open = [&](NodeId id) {
    steps.step();
    marks[static_cast<size_t>(id)] = Mark::Open;
    Visit visit{id, {}, 0};
    for_each_use(graph.node(id), [&](ValueId v) {
      const NodeId p = graph.value(v).producer;
      if (p != kNoNode && !graph.node(p).removed) visit.producers.push_back(p);
    });
    stack.push_back(std::move(visit));
  };
  for (size_t root = 0; root < graph.node_count(); ++root) {
    if (graph.node(static_cast<NodeId>(root)).removed || marks[root] != Mark::New) continue;
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
        context.node = graph.node(p).name;
        context.op_type = graph.node(p).op_type;
        fail(ErrorCode::InvalidModel,
             cat("the graph '", graph.name, "' has a cycle through node ", describe(graph, graph.node(p))),
             std::move(context));
      }
      if (mark == Mark::New) open(p);
    }
  }
  return order;
}

std::vector<std::vector<NodeId>> consumers(const Graph& graph, Look look) {
  std::vector<std::vector<NodeId>> out(graph.values().size());
  Steps steps(look);
  for (NodeId n = 0; n < static_cast<NodeId>(graph.node_count()); ++n) {
    steps.step();
    if (graph.node(n).removed) continue;
    for_each_use(graph.node(n), [&](ValueId v) { out.at(static_cast<size_t>(v)).push_back(n); });
  }
  return out;
}

void GraphPatch::compact(Graph& graph, Look look) {
  for (const Node& node : graph.nodes_) {
    if (!node.removed) for_each_subgraph(node, [&](const std::shared_ptr<Graph>& g) { compact(*g, look); });
  }
  std::vector<bool> used(graph.values_.size(), false);
  const auto use = [&](ValueId v) {
    if (v != kNoValue) used.at(static_cast<size_t>(v)) = true;
  };
  Steps steps(look);
  size_t live = 0;
  for (const Node& node : graph.nodes_) {
    steps.step();
    if (node.removed) continue;
    ++live;
    for_each_use(node, use);
    for (ValueId v : node.outputs) use(v);
  }
  for (ValueId v : graph.inputs_) use(v);
  for (ValueId v : graph.outputs_) use(v);
  std::erase_if(graph.captures_, [&](const Capture& c) { return !used.at(static_cast<size_t>(c.inner)); });

  std::vector<ValueId> new_value(graph.values_.size(), kNoValue);
  std::vector<ValueInfo> values;
  values.reserve(static_cast<size_t>(std::ranges::count(used, true)));
  for (size_t v = 0; v < graph.values_.size(); ++v) {
    steps.step();
    if (!used[v]) {
      graph.by_name_.erase(graph.values_[v].name);
      continue;
    }
    new_value[v] = static_cast<ValueId>(values.size());
    graph.by_name_.find(graph.values_[v].name)->second = new_value[v];
    values.push_back(std::move(graph.values_[v]));
    values.back().producer = kNoNode;
  }
  const auto map = [&](ValueId& v) {
    if (v != kNoValue) v = new_value[static_cast<size_t>(v)];
  };
  std::vector<Node> nodes;
  nodes.reserve(live);
  for (Node& node : graph.nodes_) {
    steps.step();
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
  graph.values_ = std::move(values);
  graph.nodes_ = std::move(nodes);
  for (ValueId& v : graph.inputs_) map(v);
  for (ValueId& v : graph.outputs_) map(v);
  for (Capture& c : graph.captures_) map(c.inner);
}

std::shared_ptr<Graph> GraphPatch::clone(const Graph& graph, Look look) {
  auto out = std::make_shared<Graph>();
  out->name = graph.name;
  out->doc = graph.doc;
  out->inputs_ = graph.inputs_;
  out->outputs_ = graph.outputs_;
  out->captures_ = graph.captures_;
  Steps steps(look);
  out->values_.reserve(graph.values_.size());
  for (const ValueInfo& value : graph.values_) {
    steps.step();
    out->values_.push_back(value);
    out->by_name_.emplace(value.name, static_cast<ValueId>(out->values_.size() - 1));
  }
  out->nodes_.reserve(graph.nodes_.size());
  for (const Node& node : graph.nodes_) {
    steps.step();
    out->nodes_.push_back(node);
    Attributes attributes;
    for (auto [name, attribute] : node.attributes) {
      if (auto* g = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
        if (*g) *g = clone(**g, look);
      } else if (auto* list = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
        for (auto& item : *list)
          if (item) item = clone(*item, look);
      }
      attributes.set(std::move(name), std::move(attribute));
    }
    out->nodes_.back().attributes = std::move(attributes);
  }
  return out;
}

}  // namespace infernode::graph
