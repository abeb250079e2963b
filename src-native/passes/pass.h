#pragma once

#include "passes/pipeline.h"

namespace infernode::passes {

/// One whole-graph rewrite. Edits through GraphPatch and keeps the graph valid; returns whether it changed something.
struct Pass {
  const char* name;  ///< as in optimization.disable_specified_optimizers: "ConstantFolding", "EliminateIdentity", ...
  Level level;
  bool (*run)(graph::Graph& graph, const PassOptions& options);
};

}  // namespace infernode::passes
