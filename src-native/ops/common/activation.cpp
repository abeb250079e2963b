#include "ops/common/activation.h"

#include <string>
#include <vector>

#include "base/error.h"

namespace infernode::ops {

namespace {

constexpr KnownActivation kKnown[] = {
#define INFERNODE_ACTIVATION(name, a, b, vectors, definition) \
  {#name, microkernels::Activation::k##name, a, b, definition},
#include "microkernels/common/activations.inc"
#undef INFERNODE_ACTIVATION
};

}  // namespace

const KnownActivation* find_activation(std::string_view name) {
  for (const KnownActivation& known : kKnown)
    if (name == known.name) return &known;
  return nullptr;
}

microkernels::ActivationArgs read_activation(const graph::Attributes& attributes) {
  const std::string name = attributes.get_string("activation", "");
  if (name.empty()) return {};
  const KnownActivation* const known = find_activation(name);
  if (known == nullptr) fail(ErrorCode::InvalidModel, cat("unknown activation '", name, "'"));
  const std::vector<float> params = attributes.get_floats("activation_params");
  return {known->kind, !params.empty() ? params[0] : known->a, params.size() > 1 ? params[1] : known->b};
}

}  // namespace infernode::ops
