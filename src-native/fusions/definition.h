#pragma once
// What a saved model says of operators that only this engine knows.

#include <vector>

#include "graph/definition.h"
#include "kernel/registry.h"

namespace infernode::fusions {

/// A copy of the model in which every node of domain "infernode" calls a function of that domain (one for each
/// different set of attributes and inputs); `functions` gets their bodies, of the standard's operators, so that any
/// runtime can load what is written. An operator's registration has its definition (OpTraits); throws Internal for one
/// without.
graph::Model with_definitions(const graph::Model& model, const kernel::Registry& registry,
                              std::vector<graph::FunctionDef>& functions);

}  // namespace infernode::fusions
