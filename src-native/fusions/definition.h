#pragma once
// What a saved model says of operators that only this engine knows.

#include <vector>

#include "graph/definition.h"

namespace infernode::fusions {

/// A copy of the model in which every node of domain "infernode" calls a function of that domain (one for each
/// different set of attributes and inputs); `functions` gets their bodies, of the standard's operators, so that any
/// runtime can load what is written. Throws Internal for an operator without a definition.
graph::Model with_definitions(const graph::Model& model, std::vector<graph::FunctionDef>& functions);

}  // namespace infernode::fusions
