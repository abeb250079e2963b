#include "graph/graph.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/append.h"
#include "graph/patch.h"
#include "graph/uses.h"
#include "graph/walks.h"

namespace infernode::graph {

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

std::vector<NodeId> Graph::topological_order() const { return graph::topological_order(*this, nullptr); }
std::vector<std::vector<NodeId>> Graph::consumers() const { return graph::consumers(*this, nullptr); }

bool Graph::is_output(ValueId id) const { return std::ranges::find(outputs_, id) != outputs_.end(); }

void Graph::compact() { GraphPatch::compact(*this, nullptr); }
std::shared_ptr<Graph> Graph::clone() const { return GraphPatch::clone(*this, nullptr); }

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
