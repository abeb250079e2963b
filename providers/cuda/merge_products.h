#pragma once

#include "graph/graph.h"

namespace infernode::cuda {

/// Products of one value with several constant matrices (queries, keys and values of attention) become one product and
/// a Split, whose outputs are views. Returns whether there were any: ids are renumbered then, and types of what is new
/// are set.
bool merge_products(graph::Graph& graph);

}  // namespace infernode::cuda
