#pragma once
// How readers of files make graphs: of definitions that they give away, within bounds.

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/definition.h"

namespace infernode::graph {

/// build_graph() that takes what the definition's nodes hold.
std::shared_ptr<Graph> build_graph(GraphDef&& def, const std::map<std::string, std::int64_t>& opsets,
                                   FunctionRef<void()> checkpoint = nullptr);

/// inline_functions() that throws InvalidModel, before any is made, where what it makes would take more than
/// `max_bytes` by a guess that errs on the small side. `checkpoint` is called at each node; what it throws ends the
/// work.
void inline_functions(Graph& graph, const std::vector<FunctionDef>& functions, std::size_t max_bytes,
                      FunctionRef<void()> checkpoint = nullptr);

}  // namespace infernode::graph
