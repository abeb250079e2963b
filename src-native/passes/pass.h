#pragma once

#include "passes/pipeline.h"

namespace infernode::passes {

/// One whole-graph rewrite. Edits through GraphPatch and keeps the graph valid; returns whether it changed something.
/// Subgraphs are the pipeline's to visit.
struct Pass {
  const char* name;  ///< as in optimization.disable_specified_optimizers
  int level;         ///< the lowest at which it runs by itself
  bool (*run)(graph::Graph& graph, const PassOptions& options);
  // For docs/optimizer.md, whose table of passes is the list: its file, what it does, and where it does not.
  const char *file, *does, *not_where = "";
};

/// Nodes all of whose inputs are known become constants: also those that follow from known dims only (Shape of a static
/// tensor).
bool fold_constants(graph::Graph& graph, const PassOptions& options);
/// DequantizeLinears of constants (and of those, only what the CPU or nobody has) become constants, however large, once
/// nothing is left that would read the codes: they cost as much memory as float weights do. Not codes of less than 8
/// bits, of which there are so many that this may not be affordable.
bool fold_dequantizers(graph::Graph& graph, const PassOptions& options);
/// Whether constants of so many bytes may be made of inputs of so many: takes them off the budget.
bool may_fold(const PassOptions& options, std::size_t bytes, std::size_t input_bytes);
/// Whether the node, and every node of its bodies, gives the same for the same.
bool deterministic(const graph::Node& node, const kernel::Registry& registry);
/// The outputs of a node with bodies (If, Loop, Scan, ...) where all that it reads is constant: tensors only, and only
/// where the evaluation is done within the budget's time and bounded memory. Empty otherwise.
std::vector<tensor::Value> evaluate_bodies(const graph::Graph& graph, const graph::Node& node,
                                           const PassOptions& options);
/// An If with a constant condition becomes the nodes of its branch.
bool inline_branches(graph::Graph& graph, const PassOptions& options);
/// Small constants with equal elements become one, so that nodes that read them can be seen to be equal.
bool share_constants(graph::Graph& graph, const PassOptions& options);
/// Reshapes to dims that are computed from the input's own become reshapes to constants of 0 and -1; two views in a row
/// become one.
bool fuse_reshapes(graph::Graph& graph, const PassOptions& options);
/// Nodes that can work in any order of axes do so in another one where that leaves fewer or smaller Transposes.
bool optimize_transposes(graph::Graph& graph, const PassOptions& options);
/// Transposes of a provider ("": any), or given to none, that only move dims of 1 become Reshapes, which move no data.
/// For the end: rewrites look for Transposes.
bool reshape_transposes(graph::Graph& graph, std::string_view provider);
/// Nodes whose outputs nobody reads go.
bool remove_dead_nodes(graph::Graph& graph, const PassOptions& options);
/// Nodes that compute the same from the same become one.
bool merge_common_subexpressions(graph::Graph& graph, const PassOptions& options);
/// Identity, Dropout at inference, casts to the same type, views and transposes that change nothing.
bool remove_noops(graph::Graph& graph, const PassOptions& options);
/// Two transposes, reshapes or casts in a row become one.
bool join_chains(graph::Graph& graph, const PassOptions& options);

/// Whether a dim is the same wherever it is written. Inputs may disagree on a symbol that they share, and run with a
/// warning; what a subgraph captures may come from such inputs.
bool is_certain(const graph::Graph& graph, const graph::Dim& dim);

/// `wanted` as a constant that Reshape understands: a number, 0 for the input's dim in the same place, at most one -1.
/// Empty where that cannot say it.
std::vector<std::int64_t> spell(const graph::Graph& graph, const graph::SymShape& input, const graph::SymShape& wanted);

/// Whether a node's single output may simply be its input: false where that would only move an Identity to the graph's
/// edge.
bool can_bypass(const graph::Graph& graph, graph::ValueId output, graph::ValueId input);

}  // namespace infernode::passes
