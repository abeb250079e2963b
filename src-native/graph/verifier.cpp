#include "graph/verifier.h"

#include <algorithm>

#include "base/error.h"

namespace infernode::graph {
namespace {

[[noreturn]] void fail_node(const Graph& graph, const Node& node, std::string what) {
  ErrorContext context;
  context.node = node.name;
  context.op_type = node.op_type;
  fail(ErrorCode::InvalidModel, cat("node ", describe(graph, node), " in graph '", graph.name, "': ", what),
       std::move(context));
}

void verify_at(const Graph& graph, const Graph* outer, int depth, Look look) {
  INFERNODE_CHECK(depth <= kMaxSubgraphDepth, ErrorCode::InvalidModel, "graph '", graph.name,
                  "' is nested deeper than ", kMaxSubgraphDepth, " levels");
  const auto count = static_cast<ValueId>(graph.values().size());
  const auto exists = [&](ValueId v) { return v >= 0 && v < count; };
  std::vector<bool> captured(graph.values().size(), false), defined(graph.values().size(), false);

  Steps steps(look);
  for (size_t v = 0; v < graph.values().size(); ++v) {
    steps.step();
    const ValueInfo& info = graph.values()[v];
    INFERNODE_CHECK(graph.find_value(info.name) == static_cast<ValueId>(v), ErrorCode::InvalidModel, "the name '",
                    info.name, "' is defined more than once in graph '", graph.name, "'");
    defined[v] = info.is_input || info.has_constant();
  }
  for (ValueId v : graph.inputs()) {
    INFERNODE_CHECK(exists(v) && graph.value(v).is_input, ErrorCode::InvalidModel, "graph '", graph.name,
                    "' lists an input that does not exist");
  }
  for (const Capture& c : graph.captures()) {
    const bool outer_exists = outer && c.outer >= 0 && c.outer < static_cast<ValueId>(outer->values().size());
    INFERNODE_CHECK(exists(c.inner) && outer_exists, ErrorCode::InvalidModel, "graph '", graph.name,
                    "' captures a value that does not exist");
    captured[static_cast<size_t>(c.inner)] = defined[static_cast<size_t>(c.inner)] = true;
  }
  for (size_t n = 0; n < graph.node_count(); ++n) {
    steps.step();
    const Node& node = graph.node(static_cast<NodeId>(n));
    if (node.removed) continue;
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      if (!exists(v)) fail_node(graph, node, "an output does not exist");
      const ValueInfo& info = graph.value(v);
      if (info.producer != static_cast<NodeId>(n))
        fail_node(graph, node, cat("its output '", info.name, "' is produced elsewhere too"));
      if (info.is_input) fail_node(graph, node, cat("its output '", info.name, "' is an input of the graph"));
      if (info.has_constant()) fail_node(graph, node, cat("its output '", info.name, "' is also an initializer"));
      if (captured[static_cast<size_t>(v)])
        fail_node(graph, node, cat("its output '", info.name, "' is also an outer value"));
      defined[static_cast<size_t>(v)] = true;
    }
  }
  for (size_t n = 0; n < graph.node_count(); ++n) {
    steps.step();
    const Node& node = graph.node(static_cast<NodeId>(n));
    if (node.removed) continue;
    for (ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      if (!exists(v)) fail_node(graph, node, "an input does not exist");
      if (!defined[static_cast<size_t>(v)])
        fail_node(
            graph, node,
            cat("its input '", graph.value(v).name, "' is not an output of any node, an initializer or a graph input"));
    }
    for (const auto& subgraph : subgraphs(node)) {
      verify_at(*subgraph, &graph, depth + 1, look);
      for (const Capture& c : subgraph->captures()) {
        if (!defined[static_cast<size_t>(c.outer)])
          fail_node(graph, node, cat("its subgraph reads '", graph.value(c.outer).name, "', which nothing defines"));
      }
    }
  }
  for (ValueId v : graph.outputs()) {
    INFERNODE_CHECK(exists(v), ErrorCode::InvalidModel, "graph '", graph.name, "' lists an output that does not exist");
    if (!defined[static_cast<size_t>(v)]) {
      ErrorContext context;
      context.output = graph.value(v).name;
      fail(ErrorCode::InvalidModel,
           cat("output '", graph.value(v).name, "' of graph '", graph.name, "' is produced by no node"),
           std::move(context));
    }
  }
  (void)topological_order(graph, look);
}

}  // namespace

void verify(const Graph& graph, Look look) { verify_at(graph, nullptr, 0, look); }

}  // namespace infernode::graph
