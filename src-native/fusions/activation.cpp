#include "fusions/activation.h"

namespace infernode::fusions {

std::vector<ActivationPattern> activation_patterns(const kernel::Registry& operators) {
  std::vector<ActivationPattern> patterns;
  const std::vector<const kernel::OpSchema*> schemas = operators.schemas();
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    const kernel::OpSchema& schema = *schemas[i];
    const bool newest =
        i + 1 == schemas.size() || schemas[i + 1]->name != schema.name || schemas[i + 1]->domain != schema.domain;
    if (!newest || schema.traits.activation == nullptr) continue;
    ActivationPattern pattern;
    for (std::size_t input = 1; input < schema.inputs.size(); ++input) pattern.inputs += cat(", o_a", input);
    pattern.statement =
        cat("y = ", schema.domain, schema.domain.empty() ? "" : ".", schema.name, "(t", pattern.inputs, ")");
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

std::optional<kernel::FusedActivation> read_activation(const Match& match, const graph::Node& node) {
  const kernel::ActivationFn read = kernel::traits_of(node, match.operators()).activation;
  return read == nullptr ? std::nullopt : read({match.graph(), node});
}

}  // namespace infernode::fusions
