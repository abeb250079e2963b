#pragma once

#include "passes/pipeline.h"

namespace infernode::passes {

/// One whole-graph rewrite. Edits through GraphPatch and keeps the graph valid; returns whether it changed something.
/// Subgraphs are the pipeline's to visit.
struct Pass {
  const char* name;  ///< as in optimization.disable_specified_optimizers
  bool (*run)(graph::Graph& graph, const PassOptions& options);
};

/// Nodes all of whose inputs are known become constants: also those that follow from known dims only (Shape of a static
/// tensor).
bool fold_constants(graph::Graph& graph, const PassOptions& options);
/// Nodes whose outputs nobody reads go.
bool remove_dead_nodes(graph::Graph& graph, const PassOptions& options);
/// Nodes that compute the same from the same become one.
bool merge_common_subexpressions(graph::Graph& graph, const PassOptions& options);
/// Identity, Dropout at inference, casts to the same type, views and transposes that change nothing.
bool remove_noops(graph::Graph& graph, const PassOptions& options);
/// Two transposes, reshapes or casts in a row become one.
bool join_chains(graph::Graph& graph, const PassOptions& options);

/// Whether a node's single output may simply be its input: false where that would only move an Identity to the graph's
/// edge.
bool can_bypass(const graph::Graph& graph, graph::ValueId output, graph::ValueId input);

}  // namespace infernode::passes
