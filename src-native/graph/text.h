#pragma once
// ONNX's textual syntax (onnx/docs/Syntax.md): models in tests, patterns in fusions, bodies of function operators.

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace infernode::graph {

/// Parses `<ir_version: 8, opset_import: ["" : 17]> agraph (float[N,3] X) => (float[N] Y) <float[2] w = {1, 2}> { Y = Op<axis = 1>(X, w) }`.
/// The header may be missing: then opset_import is `default_opset` for "" and 1 for com.microsoft. Types of inputs and outputs may be missing too.
/// Subgraph attributes: `then_branch = g1 () => (y) { ... }`. Throws InvalidModel with line and column.
Model parse_model(std::string_view text, std::int64_t default_opset = 21);

/// The same syntax back, stable: nodes in topological order, attributes in name order; tensors above 16 elements abbreviated as `{...}` unless `full`.
std::string to_text(const Graph& graph, bool full = false);

}  // namespace infernode::graph
