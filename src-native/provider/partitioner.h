#pragma once

#include <memory>
#include <string>
#include <vector>

#include "provider/provider.h"

namespace infernode::provider {

/// Where one node went, for the report.
struct Placement {
  std::string node, op_type, provider, reason;
};

struct PartitionOptions {
  bool forbid_cpu_fallback =
      false;  ///< session.disable_cpu_ep_fallback: Error(ProviderUnavailable) that lists the nodes left to the CPU
  const kernel::RunContext* load = nullptr;  ///< what it is a part of: Aborted where that is to end; null: nothing
};

/// Operator names of the steps the partitioner inserts, domain "infernode": input 0 copied to / from the device of
/// attribute `provider`.
inline constexpr const char* kCopyToDevice = "CopyToDevice";
inline constexpr const char* kCopyToHost = "CopyToHost";
/// A claimed subgraph as one node, domain "infernode": attributes `body` (graph) and `provider`.
inline constexpr const char* kCompiled = "CompiledSubgraph";

/// Assigns every node of the graph (top level) to a provider in the user's order, the rest to "cpu"; compiles claimed
/// subgraphs into single nodes; inserts copy nodes where a value crosses between devices, one per value and direction.
/// Graph inputs and outputs stay on the host. Subgraphs of control flow run on the CPU.
std::vector<Placement> partition(graph::Graph& graph, std::span<const std::shared_ptr<Provider>> providers,
                                 const kernel::Registry& registry, const PartitionOptions& options);

}  // namespace infernode::provider
