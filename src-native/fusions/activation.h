#pragma once
// Activations that the epilogues of convolutions and matrix products apply.

#include "fusions/rewrite.h"

namespace infernode::fusions {

/// One operator whose activation those epilogues can apply, as a pattern: `y = f(t)`. Its further inputs may be absent.
struct ActivationPattern {
  std::string statement;  ///< "y = Clip(t, o_a1, o_a2)"
  std::string inputs;     ///< ", o_a1, o_a2": for the list of the pattern's inputs
};

/// All of them: the operators say it (OpTraits::activation).
std::vector<ActivationPattern> activation_patterns(const kernel::Registry& operators);

/// The activation that a match's node is; nullopt where it cannot be fused.
std::optional<kernel::FusedActivation> read_activation(const Match& match, const graph::Node& node);

}  // namespace infernode::fusions
