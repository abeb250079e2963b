#pragma once

#include <span>
#include <string>

#include "graph/graph.h"

namespace infernode::provider {

/// Moves the nodes (a convex set, topological order) into a graph of their own and puts one kCompiled node in their
/// place. Constants they read go along.
void replace_by_compiled(graph::Graph& graph, std::span<const graph::NodeId> nodes, std::string provider);

}  // namespace infernode::provider
