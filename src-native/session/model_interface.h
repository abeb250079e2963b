#pragma once

#include <vector>

#include "graph/graph.h"
#include "session/loader.h"

namespace infernode::session {

/// Before IR version 4 every initializer stood among the inputs; those are constants, not inputs.
void drop_constant_inputs(graph::Model& model);

/// Kernels are chosen by type: what can be fed must declare one, or be an initializer; where both, they agree. Throws
/// InvalidModel that names the input.
void settle_inputs(graph::Graph& graph);

/// Gives dims the sizes that freeDimensionOverrides has for their names.
void override_dimensions(graph::Graph& graph, const SessionOptions& options, const Logger& logger);

/// Types of graph.outputs().
std::vector<graph::ValueType> output_types(const graph::Graph& graph);

/// What can be fed and what comes back. `declared`: types of the graph's outputs before inference.
void describe_interface(const graph::Graph& graph, const std::vector<graph::ValueType>& declared, LoadedModel& loaded);

}  // namespace infernode::session
