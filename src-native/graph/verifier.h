#pragma once

#include "graph/graph.h"

namespace infernode::graph {

/// Limits on what a file may ask for before anything is allocated.
inline constexpr int kMaxSubgraphDepth = 64;

/// Structural checks: single assignment, every input defined (in this graph or by a capture), no cycles, outputs
/// produced, ids in range, nesting bounded. Throws InvalidModel naming the node or value.
void verify(const Graph& graph);

}  // namespace infernode::graph
