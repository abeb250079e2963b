#pragma once

#include <memory>

#include "graph/graph.h"

namespace infernode::graph {

/// Calls f(const std::shared_ptr<Graph>&) for the graphs in a node's attributes.
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

/// Calls f(ValueId) for all values that a node reads, captures of its subgraphs included.
template <class F>
void for_each_use(const Node& node, F&& f) {
  for (ValueId v : node.inputs)
    if (v != kNoValue) f(v);
  for_each_subgraph(node, [&](const std::shared_ptr<Graph>& g) {
    for (const Capture& c : g->captures()) f(c.outer);
  });
}

}  // namespace infernode::graph
