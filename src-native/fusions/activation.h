#pragma once
// Activations that the epilogues of convolutions and matrix products apply.

#include "fusions/rewrite.h"

namespace infernode::fusions {

/// Patterns `y = f(t)`; those of Clip take `o_min` and `o_max`, which the pattern's inputs must list.
inline constexpr const char* kActivations[] = {
    "y = Relu(t)",
    "y = Sigmoid(t)",
    "y = Tanh(t)",
    "y = LeakyRelu(t)",
    "y = HardSwish(t)",
    "y = HardSigmoid(t)",
    "y = Gelu(t)",
    "y = com.microsoft.Gelu(t)",
    "y = com.microsoft.FastGelu(t)",
    "y = com.microsoft.QuickGelu(t)",
    "y = Clip(t, o_min, o_max)",
};

/// Attributes `activation` and `activation_params` of a fused operator (ops/common/activation.h).
struct FusedActivation {
  std::string name;
  std::vector<float> params;
  bool is_published = true;  ///< com.microsoft's FusedConv has it too
  /// Leaves the attributes as they are where there is no activation.
  void set(graph::Attributes& attributes) const;
};

/// The activation that a match's node is; nullopt where it cannot be fused.
std::optional<FusedActivation> read_activation(const Match& match, const graph::Node& node);

}  // namespace infernode::fusions
