#pragma once
// ONNX's textual syntax (onnx/docs/Syntax.md): models in tests, patterns in fusions, bodies of function operators.

#include <string>
#include <string_view>

#include "graph/definition.h"
#include "graph/graph.h"

namespace infernode::graph {

/// Parses `<ir_version: 8, opset_import: ["" : 17]> agraph (float[N,3] X) => (float[N] Y) <float[2] w = {1, 2}> { Y =
/// Op<axis = 1>(X, w) }`. The header may be missing: then opset_import is `default_opset` for "" and 1 for
/// com.microsoft. Types of inputs and outputs may be missing too. Subgraph attributes: `then_branch = g1 () => (y) {
/// ... }`. Throws InvalidModel with line and column. Optional inputs and outputs are left out as `""` or by nothing
/// between commas; names that are no identifiers are quoted; a node's name may stand before it in brackets: `["conv1"]
/// Y = Conv(X, W)`. Numbers of float tensors and attributes may be `inf` and `nan`. Functions after the graph are
/// inlined. `#` begins a comment.
Model parse_model(std::string_view text, std::int64_t default_opset = 21);

/// `<opset_import: ["" : 18], domain: "local"> Name <alpha, beta: float = 1.0> (X, bias) => (Y) { Y = Op<a = @alpha>(X,
/// bias) }`; all before the inputs may be missing. `@name` refers to an attribute of the call.
FunctionDef parse_function(std::string_view text, std::int64_t default_opset = 21);

/// The same syntax back, stable: nodes in topological order, attributes in name order; tensors above 16 elements
/// abbreviated as `{...}` unless `full`.
std::string to_text(const Graph& graph, bool full = false);
/// ` <a = 1, b = "c">`, in name order, as it stands between an operator and its inputs; empty where there are none.
std::string to_text(const Attributes& attributes);

}  // namespace infernode::graph
