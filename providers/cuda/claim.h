#pragma once

#include "provider/provider.h"
#include "providers/cuda/lowering/lowering.h"

namespace infernode::cuda {

/// The nodes that run on the device, and those that such nodes read and whose results are known from shapes alone,
/// which are computed when a plan is made.
std::vector<graph::NodeId> claimed_nodes(const provider::GraphView& view, const LoweringTable& lowerings);

/// Whether every node of a graph can be lowered, or is known from shapes and constants.
bool can_lower_all(const graph::Graph& graph, std::span<const graph::NodeId> order, const kernel::Registry& registry,
                   const LoweringTable& lowerings);

}  // namespace infernode::cuda
