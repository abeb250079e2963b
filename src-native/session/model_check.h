#pragma once

#include "graph/graph.h"
#include "kernel/registry.h"

namespace infernode::session {

/// Throws UnsupportedOperator for every operator that the model uses and nobody knows, in one error; Aborted where the
/// load is to end.
void check_operators(const graph::Model& model, const kernel::Registry& registry, const kernel::RunContext& load);

/// Throws InvalidModel where the model imports a newer opset than is known here.
void check_opsets(const graph::Model& model, const kernel::Registry& registry, const Logger& logger);

}  // namespace infernode::session
