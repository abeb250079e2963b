#pragma once

#include <optional>
#include <span>

#include "kernel/inference.h"

namespace infernode::passes {

/// What inference finds in the graph; nullopt for a body that contradicts itself: it may never run, and rewrites leave
/// it alone.
inline std::optional<kernel::InferredGraph> infer_sound(const graph::Graph& graph, std::span<const graph::NodeId> order,
                                                        const kernel::Registry& registry,
                                                        const Logger* logger = nullptr,
                                                        const kernel::RunContext* load = nullptr) {
  try {
    return kernel::infer_values(graph, order, {}, {}, registry, {}, logger, load);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Aborted || error.code() == ErrorCode::OutOfMemory) throw;
    return std::nullopt;
  }
}

}  // namespace infernode::passes
