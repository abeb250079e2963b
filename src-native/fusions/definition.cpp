#include "fusions/definition.h"

#include <algorithm>

#include "base/error.h"
#include "fusions/rewrite.h"
#include "graph/text.h"

namespace infernode::fusions {

namespace {

using graph::Attributes;
using graph::FunctionDef;
using graph::Graph;
using graph::Node;

/// Inputs i0, i1, ... of a function that stands for the node; an absent one is "".
std::vector<std::string> inputs_of(const Node& node) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    names.push_back(node.inputs[i] == graph::kNoValue ? "" : cat("i", i));
  return names;
}

class Definer {
 public:
  Definer(const kernel::Registry& registry, std::int64_t opset, std::vector<FunctionDef>& functions)
      : registry_(registry), opset_(opset), functions_(functions) {}

  void define(Graph& graph) {
    for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
      Node& node = graph.node(id);
      if (node.removed) continue;
      for (const auto& body : graph::subgraphs(node)) define(*body);
      if (node.domain == kOwn) call_function(graph, node);
    }
  }

 private:
  struct Defined {
    std::string op, body;
    std::vector<std::string> inputs;
    std::size_t outputs;
    Attributes attributes;
    std::string name;
  };

  void call_function(const Graph& graph, Node& node) {
    const std::vector<std::string> in = inputs_of(node);
    const kernel::DefinitionFn define = kernel::traits_of(node, registry_).definition;
    if (define == nullptr)
      fail(ErrorCode::Internal, cat(graph::describe(graph, node), " has no definition in standard operators"));
    const std::string body = define(graph, node);
    auto at = std::find_if(defined_.begin(), defined_.end(), [&](const Defined& d) {
      return d.op == node.op_type && d.body == body && d.inputs == in && d.outputs == node.outputs.size() &&
             d.attributes == node.attributes;
    });
    if (at == defined_.end()) {
      defined_.push_back(
          {node.op_type, body, in, node.outputs.size(), node.attributes, cat(node.op_type, "_", defined_.size())});
      at = defined_.end() - 1;
      add(*at);
    }
    node.op_type = at->name;
    node.attributes = {};
  }

  void add(const Defined& defined) {
    std::string inputs;
    for (std::size_t i = 0; i < defined.inputs.size(); ++i) inputs += cat(i == 0 ? "i" : ", i", i);
    functions_.push_back(
        graph::parse_function(cat("<opset_import: [\"\" : ", opset_, "], domain: \"", kOwn, "\"> ", defined.name, " (",
                                  inputs, ") => (", defined.outputs > 1 ? "y, p" : "y", ") { ", defined.body, " }")));
  }

  const kernel::Registry& registry_;
  std::int64_t opset_;
  std::vector<FunctionDef>& functions_;
  std::vector<Defined> defined_;
};

}  // namespace

graph::Model with_definitions(const graph::Model& model, const kernel::Registry& registry,
                              std::vector<FunctionDef>& functions) {
  graph::Model copy = model;
  copy.graph = model.graph->clone();
  // Older versions have other broadcasting, or no Erf.
  constexpr std::int64_t kOldest = 13;
  const auto imported = model.info.opsets.find("");
  Definer(registry, imported == model.info.opsets.end() ? kOldest : std::max(imported->second, kOldest), functions)
      .define(*copy.graph);
  return copy;
}

}  // namespace infernode::fusions
