#pragma once

#include "graph/walks.h"

namespace infernode::graph {

/// Limits on what a file may ask for before anything is allocated.
inline constexpr int kMaxSubgraphDepth = 64;

/// Structural checks: single assignment, every input defined (in this graph or by a capture), no cycles, outputs
/// produced, ids in range, nesting bounded. Throws InvalidModel naming the node or value. Calls `look` now and then.
void verify(const Graph& graph, Look look = nullptr);

}  // namespace infernode::graph
