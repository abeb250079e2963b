#include "transform/weights.h"

#include <algorithm>

#include "base/error.h"
#include "graph/uses.h"
#include "graph/walks.h"

namespace infernode::transform {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using graph::ValueInfo;
using tensor::Tensor;

namespace {

/// The Constant that makes the value; null where another node does, or none.
const Node* constant_node(const Graph& graph, ValueId id) {
  const NodeId producer = graph.value(id).producer;
  if (producer == graph::kNoNode) return nullptr;
  const Node& node = graph.node(producer);
  return node.op_type == "Constant" && node.domain.empty() ? &node : nullptr;
}

std::set<std::string, std::less<>> set_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

template <class F>
void for_each_node(const Graph& graph, const F& f) {
  for (std::size_t i = 0; i < graph.node_count(); ++i) {
    const Node& node = graph.node(static_cast<NodeId>(i));
    if (node.removed) continue;
    f(node);
    graph::for_each_subgraph(node, [&](const std::shared_ptr<Graph>& body) { for_each_node(*body, f); });
  }
}

}  // namespace

const Tensor* constant_of(const Graph& graph, ValueId id) {
  if (id == graph::kNoValue) return nullptr;
  const ValueInfo& value = graph.value(id);
  if (value.constant.is_tensor()) return &value.constant.tensor();
  const Node* node = constant_node(graph, id);
  return node == nullptr ? nullptr : node->attributes.get_tensor("value");
}

WeightUses::WeightUses(Graph& graph, const Context& context) : graph_(graph), context_(context) {
  for (const std::vector<NodeId>& readers : graph::consumers(graph, context.run)) uses_.push_back(readers.size());
  for (const ValueId id : graph.outputs()) ++uses_.at(static_cast<std::size_t>(id));
}

void WeightUses::drop(ValueId id, graph::GraphPatch& patch) {
  if (const Tensor* tensor = constant_of(graph_, id)) context_.let_go(*tensor);
  if (--uses_.at(static_cast<std::size_t>(id)) > 0) return;
  ValueInfo& value = graph_.value(id);
  if (value.producer != graph::kNoNode) return patch.remove_node(value.producer);
  value.constant = {};
  if (value.is_input) std::erase(graph_.mutable_inputs(), id);  // that of an exporter that lists all its weights
  value.is_input = false;
}

NodeChoice::NodeChoice(const Graph& graph, const Settings& settings, std::string_view include)
    : types_(set_of(settings.texts("opTypesToQuantize"))),
      excluded_(set_of(settings.texts("nodesToExclude"))),
      included_(set_of(settings.texts(include))) {
  std::set<std::string, std::less<>> names;
  for_each_node(graph, [&](const Node& node) { names.insert(node.name); });
  const auto check = [&](std::string_view option, const std::set<std::string, std::less<>>& given) {
    for (const std::string& name : given) {
      if (names.contains(name)) continue;
      fail(ErrorCode::InvalidArgument, cat(option, " names '", name, "', and the model has no node of this name"),
           {.node = name});
    }
  };
  check("nodesToExclude", excluded_);
  check(include, included_);
}

bool NodeChoice::has_type(const Node& node) const { return node.domain.empty() && types_.contains(node.op_type); }

std::string_view NodeChoice::refusal(const Node& node) const {
  if (excluded_.contains(node.name)) return "it is excluded";
  if (!included_.empty() && !included_.contains(node.name)) return "it is not among the nodes that are included";
  return "";
}

NodeVisits::NodeVisits(const Graph& graph, const Settings& settings, std::string_view include, const Context& context,
                       Report& report)
    : choice_(graph, settings, include), context_(context), report_(report) {
  for_each_node(graph, [this](const Node& node) { total_ += choice_.has_type(node) ? 1 : 0; });
}

void NodeVisits::visit(Graph& graph, FunctionRef<void(Graph&)> body, FunctionRef<std::string(const Node&)> refusal,
                       FunctionRef<std::string(NodeId, const Node&)> replace) {
  const auto count = static_cast<NodeId>(graph.node_count());  // others are made here
  for (NodeId id = 0; id < count; ++id) {
    context_.run.check();
    if (graph.node(id).removed) continue;
    for (const auto& inner : graph::subgraphs(graph.node(id))) body(*inner);
    if (!choice_.has_type(graph.node(id))) continue;
    const Node node = graph.node(id);
    Outcome outcome{node.name.empty() ? graph::describe(graph, node) : node.name, node.op_type, {}, {}};
    outcome.reason = choice_.refusal(node);
    if (outcome.reason.empty()) outcome.reason = refusal(node);
    if (outcome.reason.empty()) outcome.became = replace(id, node);
    report_.nodes.push_back(std::move(outcome));
    context_.tell(++done_, total_);
  }
}

bool has_bias(const Node& node) { return node.inputs.size() > 2 && node.inputs[2] != graph::kNoValue; }

std::string_view refusal_of_gemm(const Node& node) {
  if (node.attributes.get_int("transA", 0) != 0) return "its first input is transposed";
  if (node.attributes.get_float("alpha", 1) != 1) return "its alpha is not 1";
  if (has_bias(node) && node.attributes.get_float("beta", 1) != 1) return "its beta is not 1";
  return "";
}

void naming_weight(const Graph& graph, const Node& node, ValueId weight, FunctionRef<void()> make) {
  try {
    make();
  } catch (Error& e) {
    if (e.code() == ErrorCode::InvalidModel) {
      e.prepend(cat("the weight '", graph.value(weight).name, "' of ", graph::describe(graph, node),
                    " cannot be quantized (nodesToExclude leaves nodes out): "));
      e.context().node = node.name;
    }
    throw;
  }
}

void check_changed(const Graph& graph, const Report& report, std::string_view what,
                   std::initializer_list<std::string_view> made) {
  const bool changed = std::ranges::any_of(report.nodes, [](const Outcome& o) { return !o.became.empty(); });
  if (changed) return;
  std::string reasons;
  for (const Outcome& node : report.nodes) {
    if (reasons.find(node.reason) == std::string::npos) reasons += cat(reasons.empty() ? "" : "; ", node.reason);
  }
  if (!reasons.empty()) reasons = cat(" Of those that were looked at: ", reasons, ".");
  std::size_t before = 0;
  for_each_node(graph, [&](const Node& node) { before += std::ranges::count(made, node.op_type) > 0 ? 1 : 0; });
  const std::string quantized =
      before == 0 ? std::string() : cat(" The model is quantized already: ", before, " of its nodes are.");
  fail(ErrorCode::InvalidModel, cat("there is nothing to quantize: no ", what, ".", quantized, reasons));
}

}  // namespace infernode::transform
