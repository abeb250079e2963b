#pragma once
// Constants that nested graphs read from outside.

#include "graph/graph.h"

namespace infernode::graph {

/// Constants that the bodies of the graph's nodes capture become constants of the bodies, at any depth; the memory
/// stays shared. What is inside a body can then be folded, fused and packed like any other constant.
void adopt_constants(Graph& graph);

/// The other way round, for files, in which each constant stands once: constants that share their memory become one of
/// the outermost graph, which the bodies capture.
void capture_constants(Graph& graph);

}  // namespace infernode::graph
