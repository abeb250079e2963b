#include "session/model_check.h"

#include <algorithm>

namespace infernode::session {

using graph::Graph;
using graph::Model;

namespace {

/// Operators nobody knows, each with the nodes that use it.
struct Unknown {
  std::string why;
  std::size_t nodes = 0;
};
using UnknownOperators = std::vector<std::pair<std::string, Unknown>>;

void collect_unknown(const Graph& graph, const kernel::Registry& registry, const kernel::RunContext& load,
                     UnknownOperators& unknown, ErrorContext& first) {
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.node_count()); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.removed) continue;
    load.check();
    if (registry.find_schema(node.domain, node.op_type, node.opset) == nullptr) {
      std::string key = cat(node.domain, ":", node.op_type, ":", node.opset);
      auto at = std::find_if(unknown.begin(), unknown.end(), [&](const auto& item) { return item.first == key; });
      if (at == unknown.end()) {
        const std::string why = registry.why_missing(node.domain, node.op_type, node.opset);
        unknown.emplace_back(
            std::move(key), Unknown{cat("In Node, ", graph::describe(graph, node), ": ", why, ". No Op registered for ",
                                        node.op_type, " with domain_version of ", node.opset, " (", node.op_type,
                                        " is not a registered function/op)")});
        at = unknown.end() - 1;
      }
      ++at->second.nodes;
      if (first.op_type.empty()) first = {.node = node.name, .op_type = node.op_type};
    }
    for (const auto& body : graph::subgraphs(node)) collect_unknown(*body, registry, load, unknown, first);
  }
}

}  // namespace

void check_operators(const Model& model, const kernel::Registry& registry, const kernel::RunContext& load) {
  UnknownOperators unknown;
  ErrorContext context;
  collect_unknown(*model.graph, registry, load, unknown, context);
  if (unknown.empty()) return;
  for (const auto& [key, item] : unknown) {
    context.details.push_back(item.nodes == 1 ? item.why : cat(item.why, ", and ", item.nodes - 1, " more such nodes"));
  }
  std::string message = cat("This is an invalid model. ", context.details[0]);
  if (unknown.size() > 1) {
    message = cat("This is an invalid model: ", unknown.size(), " operators are not known:");
    for (const std::string& line : context.details) message += "\n  " + line;
  }
  fail(ErrorCode::UnsupportedOperator, std::move(message), std::move(context));
}

void check_opsets(const Model& model, const kernel::Registry& registry, const Logger& logger) {
  const auto onnx = model.info.opsets.find("");
  if (onnx == model.info.opsets.end() || onnx->second <= registry.newest_opset("")) return;
  const std::int64_t newest = std::max(registry.newest_opset(""), kernel::kNewestOnnxOpset);
  if (onnx->second > newest) {
    fail(ErrorCode::InvalidModel,
         cat("ValidateOpsetForDomain: the model imports opset ", onnx->second, " of ai.onnx, and ", newest,
             " is the newest known here. Export it with opset ", newest, " or lower, or update infernode."));
  }
  logger.write(LogSeverity::Verbose, "load", "opset ", onnx->second);
}

}  // namespace infernode::session
