#pragma once

#include <span>

#include "kernel/inference.h"
#include "runtime/shapes/signature.h"

namespace infernode::runtime {

class SymbolicShapes;

/// Whether substitution says of a value what inference does: the same type, and no known value that inference does not
/// know.
bool says_the_same(const kernel::InferredGraph& inferred, const kernel::InferredGraph& substituted, graph::ValueId id);

/// Infers for sizes unlike those of the signature, some of its symbols changed, and compares with what substitution
/// says of the `needed` values. Throws Internal where the two contradict. Gives the number of sizes compared, without
/// those that inference refuses. Slow: for tests.
std::size_t check_substitution(const graph::Graph& graph, std::span<const graph::NodeId> order,
                               std::span<const graph::ValueId> needed, const SymbolicSignature& signature,
                               const SymbolicShapes& shapes, const kernel::Registry& registry,
                               std::span<const kernel::OpSchema* const> schemas);

}  // namespace infernode::runtime
